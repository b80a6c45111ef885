/// The variables by which programs and libraries learn of a proxy. What is asked on the program's own loopback needs none: its listeners are
/// ours, and its own.
extension ProxyPlace {
    func tell(_ environment: inout ProgramEnvironment) {
        let url = host.contains(":") ? "http://[\(host)]:\(port)" : "http://\(host):\(port)"
        // curl reads the small names alone, and programs on Go's library the large ones first.
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment[name] = url
        }
        for name in ["no_proxy", "NO_PROXY"] { environment[name] = "localhost,127.0.0.1,::1" }
        // Node.js from 22.21 and 24.5 on.
        environment["NODE_USE_ENV_PROXY"] = "1"
        environment.addJavaOptions(
            ["http", "https"].flatMap { ["-D\($0).proxyHost=\(host)", "-D\($0).proxyPort=\(port)"] })
    }
}

/// The variables by which programs and libraries learn whom to trust.
extension TrustFolder {
    func tell(_ environment: inout ProgramEnvironment) {
        for name in [
            "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO",
            "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS", "DENO_CERT",
            // A setting in npm's own file would count before Node.js's.
            "npm_config_cafile",
        ] { environment[name] = bundle }
        environment.addJavaOptions([
            "-Djavax.net.ssl.trustStore=\(javaStore)", "-Djavax.net.ssl.trustStoreType=JKS",
            "-Djavax.net.ssl.trustStorePassword=\(JavaTrustStore.password)",
        ])
    }
}

extension ProgramEnvironment {
    /// Adds behind those that are there: of two, the last counts.
    fileprivate mutating func addJavaOptions(_ options: [String]) {
        append(options.joined(separator: " "), to: "JAVA_TOOL_OPTIONS")
    }
}
