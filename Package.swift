// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableExperimentalFeature("Lifetimes"),
]

// The run-time half of the law of exclusivity costs a fifth of all instructions of an exchange. Every test but the budgets and the optimised
// simulation runs a build that has it; a release relies on them. Only what a data loop runs does without it, and what simulates its world.
// With CARDEA_EXCLUSIVITY=checked everything has it, for the promises to be tried on (`make promises BUILD=checked`).
let exclusivity = Context.environment["CARDEA_EXCLUSIVITY"] ?? "unchecked"
let unchecked: SwiftSetting = .unsafeFlags(["-enforce-exclusivity=\(exclusivity)"], .when(configuration: .release))
// A request that finds its token runs none of the other modules, so that they are built to be small.
let small: SwiftSetting = .unsafeFlags(["-Osize"], .when(configuration: .release))
let onTheDataPath: Set = ["Octets", "HTTP1", "HTTP2", "HotCache", "Telemetry", "Reactor", "TLS", "Audit", "DataPath"]

func module(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil) -> Target {
    .target(
        name: name, dependencies: dependencies, resources: resources,
        swiftSettings: settings + (onTheDataPath.contains(name) ? [unchecked] : [small]))
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(name: "\(name)Tests", dependencies: [.byName(name: name)] + dependencies, swiftSettings: settings)
}

let package = Package(
    name: "cardea",
    products: [
        .executable(name: "cardea", targets: ["cardea"]),
        .executable(name: "cardea-lab", targets: ["cardea-lab"]),
        // What the benchmarks measure: a package of its own under Tests/Performance, so that what they stand beside never gets
        // into this package's resolved versions.
        .library(name: "Measured", targets: ["CLinux", "HotCache", "Octets", "TLS", "TokenStore", "Tokens"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2")
    ],
    targets: [
        // C shims: each is imported by exactly one module of the gateway. The lab uses libraries directly.
        .target(name: "CLinux"),
        // The ABI of MIT's GSSAPI, declared here because the library is opened at run time and its headers need not be installed.
        .target(name: "CGSSAPI"),
        // The ABI of libxml2's reader, for the same reason.
        .target(name: "CXML"),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),

        // Pure. Octets and Numbers depend on nothing, because every module that reads or writes text needs them.
        module("Octets"),
        module("Numbers"),
        module("World"),
        module("HTTP1", ["Octets"]),
        module("HotCache"),
        module("Tokens", ["HotCache", "Octets"]),
        module("Configuration", ["CYAML", "Numbers", "Octets", "World"]),
        module("Telemetry", ["Octets", "World"]),

        // I/O and what stands on it.
        module("Reactor", ["CLinux", "Numbers", "Octets", "Telemetry", "World"]),
        module("TLS", ["COpenSSL", "Octets", "World"]),
        module("HTTP2", ["CNghttp2", "HTTP1"]),
        module("GSSAPI", ["CGSSAPI", "World"]),
        module("XML", ["CXML", "Octets"]),
        module("TokenStore", ["CSQLite", "Octets", "TLS", "Tokens", "World"]),
        module("Audit", ["Numbers", "Octets", "TLS", "Telemetry", "World"]),
        module("Fleet", ["Numbers", "Octets", "TLS", "World"]),
        module(
            "Handshakes",
            ["CZlib", "GSSAPI", "Numbers", "Octets", "Tokens", "HTTP1", "Configuration", "TLS", "World", "XML"]),
        module(
            "DataPath",
            [
                "Audit", "Numbers", "Octets", "World", "HTTP1", "HTTP2", "HotCache", "Tokens", "Telemetry", "Reactor",
                "TLS",
                "Handshakes",
            ]),
        module(
            "Keeping",
            [
                "Audit", "Numbers", "Octets", "World", "HTTP1", "HotCache", "Tokens", "Configuration", "Telemetry",
                "Reactor", "TLS", "TokenStore", "Fleet", "Handshakes", "DataPath",
            ]),
        module(
            "Gateway",
            [
                "Audit", "Numbers", "Octets", "World", "HTTP1", "HotCache", "Tokens", "Configuration", "Telemetry",
                "Reactor", "TLS", "TokenStore", "Fleet", "Handshakes", "DataPath", "Keeping",
            ]),
        module(
            "Admin",
            ["DataPath", "Gateway", "Keeping", "Numbers", "Octets", "Tokens", "Telemetry", "Configuration"],
            resources: [.embedInCode("Page/style.css")]),

        .executableTarget(
            name: "cardea",
            dependencies: [
                "Audit", "HTTP1", "HotCache", "Numbers", "Octets", "Tokens", "Configuration", "Telemetry", "Reactor",
                "TLS", "TokenStore", "Handshakes", "DataPath", "Keeping", "Gateway", "Admin", "World",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], swiftSettings: settings,
            // Everything is bound at the start, after which the linker's tables are read-only. Nothing looks up our symbols at run time, and
            // a megabyte of their names stays out.
            linkerSettings: [.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "--no-export-dynamic"])]),
        // Writes docs/reference, and the manual pages that are installed. Not in the gateway's binary, and not installed itself.
        .executableTarget(
            name: "cardea-reference",
            dependencies: [
                "Admin", "Configuration", "DataPath", "Gateway", "Handshakes", "Keeping", "Telemetry",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "cardea-lab", dependencies: ["COpenSSL", "CZlib"], resources: [.embedInCode("Control/faults.txt")],
            swiftSettings: settings),

        // Reads the sources and their imports; it depends on no module of the gateway.
        .testTarget(name: "HouseTests", dependencies: ["GoldenFiles"], swiftSettings: settings),
        tests("Octets"),
        tests("Numbers"),
        tests("World", ["ScriptedWorld"]),
        tests("HTTP1"),
        tests("HotCache", ["CThreadSanitizer"]),
        tests("Tokens", ["GoldenFiles", "HotCache"]),
        tests("Configuration", ["TemporaryFolder"]),
        tests("Telemetry", ["GoldenFiles", "ScriptedWorld", "World"]),
        tests("Reactor", ["CLinux", "ScriptedKernel", "Telemetry", "World"]),
        tests("TLS", ["COpenSSL", "Octets", "TemporaryFolder", "World"]),
        tests("HTTP2", ["CNghttp2", "HTTP1"]),
        tests("GSSAPI"),
        tests("TokenStore", ["GoldenFiles", "Octets", "ScriptedWorld", "TLS", "TemporaryFolder"]),
        tests("Audit", ["Octets", "ScriptedWorld", "Telemetry", "TLS", "TemporaryFolder", "World"]),
        tests(
            "Fleet",
            [
                "Configuration", "DataPath", "GoldenFiles", "Keeping", "Numbers", "Octets", "Reactor", "ScriptedWorld",
                "TLS", "TLSTests", "TemporaryFolder", "World",
            ]),
        tests("Handshakes", ["Configuration", "GSSAPI", "GoldenFiles", "HTTP1", "Octets", "TemporaryFolder"]),
        tests(
            "DataPath",
            [
                "Audit", "Configuration", "Gateway", "HTTP1", "HTTP2", "Handshakes", "HotCache", "Octets", "Reactor",
                "Scenes", "ScriptedKernel", "ScriptedWorld", "TLS", "TLSTests", "Telemetry", "TemporaryFolder",
                "Tokens",
            ]),
        tests(
            "Keeping",
            [
                "Audit", "Configuration", "DataPath", "Fleet", "Gateway", "GoldenFiles", "HTTP1", "Handshakes",
                "HotCache",
                "Numbers", "Octets", "Reactor", "Scenes", "ScriptedKernel", "ScriptedWorld", "TLS", "Telemetry",
                "TemporaryFolder", "TokenStore", "Tokens",
            ]),
        tests(
            "Gateway",
            [
                "Configuration", "DataPath", "GoldenFiles", "Handshakes", "HotCache", "Keeping", "Scenes", "TLS",
                "TLSTests", "Telemetry", "Tokens",
            ]),
        tests("Admin", ["DataPath", "Gateway", "Keeping", "GoldenFiles", "Octets", "Telemetry", "TLS"]),

        .testTarget(
            name: "ReferenceTests",
            dependencies: [
                "Configuration", "DataPath", "GoldenFiles", "Telemetry", "cardea", "cardea-reference",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),

        .target(name: "TemporaryFolder", path: "Tests/TemporaryFolder", swiftSettings: settings),
        // Texts under Tests/Golden that tests compare what is stored, shared or told with.
        .target(name: "GoldenFiles", path: "Tests/GoldenFiles", swiftSettings: settings),
        // A kernel in memory, with a virtual clock and faults on demand.
        .target(
            name: "ScriptedKernel", dependencies: ["CLinux", "Reactor"], path: "Tests/ScriptedKernel",
            swiftSettings: settings + [unchecked]),
        // Clocks that a test moves, and numbers that follow from a seed.
        .target(
            name: "ScriptedWorld", dependencies: ["World"], path: "Tests/ScriptedWorld", swiftSettings: settings),
        // One data loop between callers, upstreams and a keeper that a test plays, made of a configuration as a gateway makes it. A target of
        // tests, though it has none: `swift build` leaves it out, and an optimised build lets it look inside the modules.
        .testTarget(
            name: "Scenes",
            dependencies: [
                "Audit", "Configuration", "DataPath", "Gateway", "HTTP1", "Handshakes", "HotCache", "Keeping",
                "Reactor",
                "ScriptedKernel", "ScriptedWorld", "Telemetry", "Tokens",
            ], path: "Tests/Scenes", swiftSettings: settings),
        // Whole gateways in virtual time (`make sim`); never installed. The scripts of the fleet's server run by the server's own interpreter.
        .systemLibrary(
            name: "CLua", path: "Tests/Simulation/CLua", pkgConfig: "lua5.1", providers: [.apt(["liblua5.1-0-dev"])]),
        .executableTarget(
            name: "cardea-sim",
            dependencies: [
                "CLua", "CNghttp2", "CSQLite", "Configuration", "DataPath", "Fleet", "Gateway", "Handshakes", "Keeping",
                "Reactor", "ScriptedKernel", "ScriptedWorld",
                "TLS", "Telemetry", "TemporaryFolder", "TokenStore", "World",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], path: "Tests/Simulation", exclude: ["CLua", "faults"], swiftSettings: settings + [unchecked],
            // The runtime in the executable, as in a release: calls of it through a table take a fifth more time. Modules that are compiled
            // for a runtime beside it do not name the parts of Foundation that stand in libraries of their own.
            linkerSettings: [
                .unsafeFlags(
                    ["-static-stdlib", "-lFoundationEssentials", "-l_FoundationCollections", "-l_FoundationCShims"],
                    .when(configuration: .release))
            ]),
        // Tells the thread sanitizer what the kernel does for a contended lock; compiles to nothing elsewhere. All test targets
        // are one executable, so one of them depends on it.
        .target(name: "CThreadSanitizer", path: "Tests/ThreadSanitizer"),
        // Counts allocations in release builds; compiles to nothing elsewhere.
        .target(name: "CMallocCount", path: "Tests/Budgets/CMallocCount"),
        .testTarget(
            name: "Budgets",
            dependencies: [
                "CMallocCount", "DataPath", "HotCache", "Reactor", "Scenes", "ScriptedKernel", "TLS",
            ],
            path: "Tests/Budgets", exclude: ["CMallocCount", "test_exchanges_cost_what_they_may.py"],
            swiftSettings: settings),
    ]
)

// With CARDEA_SANITIZER=thread the programs are told what the tests are told of locks (`make soak BUILD=thread`).
if Context.environment["CARDEA_SANITIZER"] == "thread" {
    for target in package.targets where ["cardea", "cardea-lab"].contains(target.name) {
        target.dependencies.append("CThreadSanitizer")
    }
}

// CARDEA_TESTS names the test targets of a build, with '|' between them; a suite may stand behind a point. What they do not need is left
// out, the programs above all. Their package stays, or its resolved version would be forgotten.
if let names = Context.environment["CARDEA_TESTS"] {
    var needed: Set<String> = []
    var open = names.split(separator: "|").map { String($0.prefix { $0 != "." }) }
    while let name = open.popLast() {
        guard needed.insert(name).inserted else { continue }
        for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
            if case .byNameItem(let name, _) = dependency { open.append(name) }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
} else {
    // Wants a library that nothing else does: built where it is named (`make sim`).
    package.targets.removeAll { ["cardea-sim", "CLua"].contains($0.name) }
}
