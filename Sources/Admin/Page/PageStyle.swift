/// The page's looks. In the document itself, so that a saved page and one behind a tunnel look alike; the Content-Security-Policy admits
/// it by digest.
enum PageStyle {
    /// CSP source expression (CSP3 §2.3.1) of `sheet`. A test says the new one when the sheet changes.
    static let digest = "sha256-A72UKHG5IKk1Tb+WA1ORecIKLAPHwNfvIfPH1Bp9jJM="

    /// `style.css`, which the build embeds.
    static let sheet = HTML(embedded: PackageResources.style_css)
}
