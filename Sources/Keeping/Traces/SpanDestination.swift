package import Handshakes

/// Where spans go.
package struct SpanDestination: Sendable {
    let url: IssuerURL
    /// Their values are read anew for each call.
    let headers: [(name: String, value: SecretSource)]
    let network: IssuerNetwork

    package init(url: IssuerURL, headers: [(name: String, value: SecretSource)], network: IssuerNetwork) {
        self.url = url
        self.headers = headers
        self.network = network
    }
}
