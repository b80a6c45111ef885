import HTTP1
import Testing

@testable import DataPath
@testable import Scenes

/// The index finds the route that a list would have found.
@Suite struct RouteTableTests {
    static let hosts = ["", "a.example", "b.example", "*.example", "*.b.example", "c.example"]
    static let paths = [
        "/", "/a", "/a/", "/a/b", "/a/b/", "/%61/", "/a-b/", "/A/", "/~x/", "/%7Ex/y", "/s1/", "/s2/", "/s3/x",
        "/a/b/c", "/a/b/c/", "/a/b/c/d", "/a/b/c/d/", "/a/b/c/d/e", "/a/b/c/d/f/", "/a/%62/c/x/",
    ]

    /// One listener; every combination of host and path, thrice, in an order that hides many behind others.
    static func plan(_ count: Int, seed: UInt64) -> String {
        var generator = Generator(seed)
        var text = "routes:\n"
        for index in 0..<count {
            let host = hosts[generator.below(hosts.count)]
            // Without a host no route for everything, which would hide all behind it.
            let path = paths[host.isEmpty ? 1 + generator.below(paths.count - 1) : generator.below(paths.count)]
            let methods = generator.below(3) == 0 ? ", methods: [PUT]" : ""
            text += "  - listen: 127.0.0.1:8080\n    to: http://127.0.0.1:9000\n    use: none\n    name: r\(index)\n"
            let name = host.isEmpty ? "" : "host: \"\(host)\", "
            text += "    match: {\(name)path: \"\(path)\"\(methods)}\n"
        }
        return text
    }

    struct Generator {
        var state: UInt64
        init(_ seed: UInt64) { state = seed }
        mutating func below(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(bound))
        }
    }

    @Test(arguments: [3, 5, 40, 400])
    func theFirstThatMatchesWins(count: Int) throws {
        let scene = try Scene(Self.plan(count, seed: UInt64(count)))
        defer { scene.end() }
        let table = try #require(scene.plan.listeners.first).table
        var generator = Generator(7)
        var head = RequestHead(maxFields: 16)
        let targets =
            Self.paths + [
                "/a?x", "/a/b?y", "/%41/", "/a/%62", "/a%2fb/c", "/zz", "*", "/a/b/c", "/%7ex/y", "//", "//a/",
                "/a/b/c/d/e?f/g",
                "/a/b/c/d/f/g", "/a//b", "/a/b/", "/a/b/c/x/y", "/a?/b/c", "/a/?b/", "/%2fa/b", "/a/b/c/d/f",
            ]
        var found = 0
        for _ in 0..<2000 {
            let host = ["a.example", "B.example", "x.b.example", "c.example:80", "q.example", "other"][
                generator.below(6)]
            let target = targets[generator.below(targets.count)]
            let method = target == "*" ? "OPTIONS" : ["GET", "PUT"][generator.below(2)]
            let bytes = Array("\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8)
            head.reset()
            let (indexed, listed) = bytes.withUnsafeBytes { bytes in
                let length = try? head.parse(bytes.octets, limits: HeadLimits())
                #expect(length == bytes.count)
                return (
                    table.first(for: head, in: bytes)?.index,
                    table.routes.first { $0.matches.mismatch(head, in: bytes) == nil }?.index
                )
            }
            #expect(indexed == listed, "\(method) \(target) \(host)")
            if indexed != nil { found += 1 }
        }
        #expect(found > 100 && found <= 2000)
    }

    /// Shapes of large files: how many routes a request is held against does not grow with the file.
    @Test(arguments: ["/r%/", "/api/r%/", "/api/v1/r%", "/a/b/c/r%/", "host"])
    func fewRoutesAreAsked(shape: String) throws {
        var text = "routes:\n"
        for index in 0..<2000 {
            let match =
                shape == "host"
                ? "host: h\(index).example, path: /api/" : "path: \(shape.replacing("%", with: "\(index)"))"
            text += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none, match: {\(match)}}\n"
        }
        // And two that every request below them has to ask.
        text += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none, match: {path: /api/}}\n"
        text += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none}\n"
        let scene = try Scene(text)
        defer { scene.end() }
        let table = try #require(scene.plan.listeners.first).table
        var head = RequestHead(maxFields: 16)
        var most = 0
        for index in stride(from: 0, to: 2000, by: 7) {
            let target = shape == "host" ? "/api/x" : shape.replacing("%", with: "\(index)") + "?q"
            let bytes = Array("GET \(target) HTTP/1.1\r\nHost: h\(index).example\r\n\r\n".utf8)
            head.reset()
            let (found, asked) = bytes.withUnsafeBytes { bytes in
                _ = try? head.parse(bytes.octets, limits: HeadLimits())
                return (table.first(for: head, in: bytes)?.index, table.asked(for: head, in: bytes))
            }
            #expect(found == index)
            most = max(most, asked)
        }
        // Its own and those two, and what happens to share a bucket.
        #expect(most < 16)
    }
}

extension RouteTable {
    /// How many routes `first` asks when none of them matches.
    func asked(for head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer) -> Int {
        guard !index.members.isEmpty else { return routes.count }
        var candidates = index.candidates(host: hostName(of: head, in: bytes), path: bytes[head.path].octets)
        var count = 0
        while candidates.next(in: index.members) != nil { count += 1 }
        return count
    }
}
