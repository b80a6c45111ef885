import FoundationEssentials
import Testing

@Suite struct RoomTests {
    @Test func aTypeIsDeclaredOnceInItsModule() throws {
        for module in try House(SourceTree.files(under: "Sources", [".swift"])).modules {
            #expect(module.declaredTwice.isEmpty, "\(module.name)")
        }
    }

    /// What `make house` prints: modules, the modules that each imports, its rooms with their files, and arrows between rooms.
    @Test func theHouseIsWrittenDown() throws {
        let files = try SourceTree.files(under: "Sources", [".swift"])
        var text = ""
        for module in House(files).modules {
            let imports = Set(files.filter { $0.module == module.name }.flatMap(\.imports))
                .intersection(Arrows.allowed.keys).sorted().joined(separator: " ")
            text += "\(module.name) (\(module.files.count)) → \(imports.isEmpty ? "nothing of ours" : imports)\n"
            let arrows = Dictionary(grouping: module.arrows, by: \.from)
            for (room, count) in module.rooms.sorted(by: { $0.key < $1.key })
            where !room.isEmpty || module.rooms.count > 1 {
                let targets = arrows[room, default: []].map { "\($0.to.isEmpty ? "." : $0.to) \($0.uses.count)" }
                text +=
                    "    \(room.isEmpty ? "." : room) (\(count))\(targets.isEmpty ? "" : " → ")\(targets.joined(separator: ", "))\n"
            }
        }
        try text.write(toFile: "\(SourceTree.root)/.build/house.txt", atomically: true, encoding: .utf8)
        #expect(text.contains("HotCache"))
    }
}

/// The reader of names is what the arrows stand on.
@Suite struct NameReaderTests {
    @Test(arguments: [
        ("struct A {\n    struct B {}\n}\nenum C { case D }\n", ["A", "C"]),
        ("public final class A: B {\n}\n@unchecked\nextension E { struct F {} }\n", ["A"]),
        ("private typealias A = B\npackage protocol P {}\nindirect enum E {}\n", ["A", "P", "E"]),
        ("let text = \"struct A {\"\n// struct B\nactor C {}\n", ["C"]),
        ("let text = \"\"\"\n    struct A \" {\n    \"\"\"\nstruct B {}\n", ["B"]),
    ])
    func typesAreFound(text: String, types: [String]) {
        #expect(
            House.Reading(SourceTree.File(path: "Sources/M/R/X.swift", text: text)).declared.map(String.init) == types)
    }

    @Test func anArrowIsFound() {
        let house = House([
            SourceTree.File(path: "Sources/M/Low/A.swift", text: "struct A {}\n// B\nlet b = \"B\"\n"),
            SourceTree.File(path: "Sources/M/High/B.swift", text: "struct B { let a: [A] }\n"),
        ])
        #expect(house.modules[0].arrows.map { "\($0.from) → \($0.to)" } == ["High → Low"])
        #expect(house.modules[0].arrows.map(\.uses) == [["B.swift: A"]])
    }
}
