/// Which module may import which, in one place (docs/design/modules.md#arrows).
enum Arrows {
    static let allowed: [String: Set<String>] = [
        // Every module that reads or writes text needs these two, so they stand below all of them.
        "Octets": [],
        "Numbers": [],
        "World": [],
        "HTTP1": [],
        "HotCache": [],
        "Telemetry": ["World"],
        "Tokens": ["HotCache"],
        "Configuration": ["CYAML", "Numbers", "World"],
        "Reactor": ["CLinux", "Numbers", "Telemetry", "World"],
        "TLS": ["COpenSSL", "World"],
        "HTTP2": ["CNghttp2", "HTTP1"],
        "GSSAPI": ["CGSSAPI", "World"],
        "XML": ["CXML"],
        "TokenStore": ["CSQLite", "TLS", "Tokens", "World"],
        "Audit": ["Numbers", "TLS", "Telemetry", "World"],
        "Fleet": ["Numbers", "TLS", "World"],
        "Handshakes": [
            "CZlib", "GSSAPI", "Numbers", "Tokens", "HTTP1", "Configuration", "TLS", "World", "XML",
            "FoundationEssentials",
        ],
        "DataPath": [
            "Audit", "Numbers", "World", "HTTP1", "HTTP2", "HotCache", "Tokens", "Telemetry", "Reactor", "TLS",
            "Handshakes",
        ],
        "Keeping": [
            "Audit", "Numbers", "World", "HTTP1", "HotCache", "Tokens", "Configuration", "Telemetry", "Reactor", "TLS",
            "TokenStore", "Fleet", "Handshakes", "DataPath",
        ],
        "Gateway": [
            "Audit", "Numbers", "World", "HTTP1", "HotCache", "Tokens", "Configuration", "Telemetry", "Reactor", "TLS",
            "TokenStore", "Fleet", "Handshakes", "DataPath", "Keeping",
        ],
        "Admin": [
            "DataPath", "Keeping", "Gateway", "Numbers", "Tokens", "Telemetry", "Configuration", "FoundationEssentials",
        ],
        "cardea": [
            "Audit", "HTTP1", "HTTP2", "HotCache", "Numbers", "Tokens", "Configuration", "Telemetry", "Reactor",
            "TLS", "TokenStore", "Handshakes", "DataPath", "Keeping", "Gateway", "Admin", "World", "ArgumentParser",
            "FoundationEssentials",
        ],
        // Reads the tables of all of them; nothing of the gateway uses it.
        "cardea-reference": [
            "Admin", "Configuration", "DataPath", "Gateway", "Handshakes", "Keeping", "Telemetry", "ArgumentParser",
            "FoundationEssentials",
        ],
        // Shares no module with the gateway, so that a mistake cannot hide on both sides; system libraries it uses directly.
        "cardea-lab": ["COpenSSL", "CZlib", "FoundationEssentials"],
    ]

    /// Exceptions. Each arrow states why it is there, and goes when it is no longer used.
    static let openChanges = [
        OpenChange(
            from: "DataPath", to: "CLinux",
            reason: "accept4 and socket constants: listeners and streams belong to the data path, and the macros that "
                + "they need have no other way into Swift")
    ]

    /// Modules apart from the gateway. Their imports do not count where a shim may have one importer.
    static let simulators: Set<String> = ["cardea-lab"]

    /// Free for every module.
    static let toolchain: Set<String> = ["Glibc", "Synchronization"]

    static func mayImport(_ name: String, from module: String) -> Bool {
        toolchain.contains(name) || name == "Octets" && !simulators.contains(module)
            || allowed[module]?.contains(name) == true
            || openChanges.contains { $0.from == module && $0.to == name }
    }
}

struct OpenChange: Sendable {
    let from: String
    let to: String
    let reason: String
}
