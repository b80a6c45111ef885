import Testing

@testable import Configuration

/// The tree must answer as a look through the list would, and must not look through a list.
@Suite struct RouteCoverTests {
    /// Asked and told as the decoder does it.
    private struct Asked {
        var cover = RouteCover()
        var matches: [Match] = []

        mutating func add(_ match: Match) -> Int? {
            let found = cover.first(covering: match, on: "a")
            if found == nil { cover.add(match, at: matches.count, on: "a") }
            matches.append(match)
            return found
        }
    }

    private func match(
        host: Match.Host? = nil, path: Match.Path? = nil, methods: [String] = [], headers: [(String, String)] = []
    ) -> Match {
        Match(
            host: host, path: path, ports: [], methods: methods,
            headers: headers.map { NamedValue(name: $0.0, value: $0.1) })
    }

    @Test func itFindsWhatAListFinds() {
        var chance = SystemRandomNumberGenerator()
        let hosts: [Match.Host?] = [
            nil, .exact("a.x"), .exact("b.x"), .exact("a.b.x"), .exact("x"), .oneLabel(".x"), .oneLabel(".b.x"),
            .exact("::1"),
        ]
        let paths: [Match.Path?] = [
            nil, .prefix("/"), .exact("/a"), .prefix("/a/"), .exact("/a/b"), .prefix("/a/b/"), .exact("/a/b/c"),
            .prefix("/b/"), .exact("/ab"), .prefix("/ab/"),
        ]
        let methods = ["GET", "PUT", "get"]
        let headers = [("h", "1"), ("h", "2"), ("i", "1")]
        for _ in 0..<300 {
            var asked = Asked()
            for _ in 0..<Int.random(in: 1...40, using: &chance) {
                let new = match(
                    host: hosts.randomElement(using: &chance) ?? nil, path: paths.randomElement(using: &chance) ?? nil,
                    methods: methods.filter { _ in Int.random(in: 0...3, using: &chance) == 0 },
                    headers: headers.filter { _ in Int.random(in: 0...3, using: &chance) == 0 })
                let listed = asked.matches.firstIndex { $0.covers(new) }
                #expect(asked.add(new) == listed, "\(new) after \(asked.matches)")
            }
        }
    }

    @Test func listenersHaveTheirOwn() {
        var cover = RouteCover()
        cover.add(match(), at: 0, on: "a")
        #expect(cover.first(covering: match(path: .exact("/x")), on: "a") == 0)
        #expect(cover.first(covering: match(path: .exact("/x")), on: "b") == nil)
    }

    /// Shapes of large files: each of `count` routes differs from all others in one thing.
    @Test(arguments: ["path", "host", "both", "method", "header", "headers", "deep", "methods"])
    func theStepsGrowWithTheRoutes(shape: String) {
        func looks(_ count: Int) -> Int {
            var asked = Asked()
            for index in 0..<count {
                let new =
                    switch shape {
                    case "path": match(path: .prefix("/api/r\(index)/"))
                    case "host": match(host: .exact("h\(index).example.com"))
                    case "both": match(host: .exact("h\(index % 50).example.com"), path: .exact("/v1/r\(index)"))
                    case "method": match(path: .prefix("/api/"), methods: ["M\(index)"])
                    case "header": match(path: .prefix("/api/"), headers: [("x", "\(index)")])
                    case "headers": match(path: .prefix("/api/"), headers: [("a", "same"), ("x", "\(index)")])
                    case "deep": match(path: .prefix("/a/b/c/d/e/f/g/h/r\(index)/"))
                    default: match(path: .prefix("/api/"), methods: ["GET", "M\(index)"])
                    }
                #expect(asked.add(new) == nil)
            }
            return asked.cover.looks
        }
        let (few, many) = (looks(500), looks(5000))
        // Ten times the routes: in proportion it is ten times the steps, in pairs a hundred times.
        #expect(many < 12 * few)
        #expect(many < 5000 * 30)
    }

    @Test func aPathOfManySegmentsNeedsNoStack() {
        var asked = Asked()
        let deep = String(repeating: "/a", count: 100_000)
        #expect(asked.add(match(path: .exact(deep))) == nil)
        #expect(asked.add(match(path: .exact(deep))) == 0)
    }
}

/// What `RouteCover` is held against.
extension Match {
    /// Whether every request that `other` matches is matched. May say no where it is so; never says yes where it is not.
    func covers(_ other: Match) -> Bool {
        let coversHost: Bool =
            switch (host, other.host) {
            case (nil, _): true
            case (.oneLabel(let suffix)?, .exact(let name)?):
                name.hasSuffix(suffix) && !name.dropLast(suffix.count).contains(".") && name.count > suffix.count
            default: host == other.host
            }
        let coversPath: Bool =
            switch (path, other.path) {
            case (nil, _): true
            case (.prefix(let above)?, .prefix(let below)?), (.prefix(let above)?, .exact(let below)?):
                below.hasPrefix(above)
            default: path == other.path
            }
        let coversMethods = methods.isEmpty || (!other.methods.isEmpty && other.methods.allSatisfy(methods.contains))
        return coversHost && coversPath && coversMethods && headers.allSatisfy(other.headers.contains)
    }
}
