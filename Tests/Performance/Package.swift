// swift-tools-version: 6.2
import PackageDescription

// What the benchmarks measure Cardea against stands here, and nothing else needs it: `make bench`, `make bench-tokens`.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
]

let package = Package(
    name: "performance",
    dependencies: [
        .package(name: "cardea", path: "../.."),
        .package(url: "https://github.com/apple/swift-atomics", from: "1.3.0"),
    ],
    targets: [
        .target(
            name: "CURCU", path: "CURCU", linkerSettings: [.linkedLibrary("urcu-cds"), .linkedLibrary("urcu-qsbr")]),
        .executableTarget(
            name: "token-bench",
            dependencies: [
                "CURCU", .product(name: "Measured", package: "cardea"),
                .product(name: "Atomics", package: "swift-atomics"),
            ], path: "TokenBench", swiftSettings: settings),
        // The floor of `make bench`: what moving bytes costs in Swift without any gateway.
        .executableTarget(
            name: "bare-relay", dependencies: [.product(name: "Measured", package: "cardea")], path: "Relay",
            swiftSettings: settings),
    ]
)
