/// Fields that frame a message or belong to one connection; the gateway alone writes them.
package enum ReservedHeader {
    private static let names: Set<String> = [
        "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authenticate",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    package static func contains(_ name: String) -> Bool { names.contains(name.lowercased()) }
}
