import FoundationEssentials
import Testing

@Suite struct RoomTests {
    @Test func aTypeIsDeclaredOnceInItsModule() throws {
        for module in try House(SourceTree.files(under: "Sources", [".swift"])).modules {
            #expect(module.declaredTwice.isEmpty, "\(module.name)")
        }
    }

    /// A module of more than a dozen files has rooms, and no file beside them.
    @Test func aLargeModuleHasRooms() throws {
        for module in try House(SourceTree.files(under: "Sources", [".swift"])).modules where module.files.count > 12 {
            #expect(module.rooms[""] == nil, "\(module.name) has \(module.files.count) files; these lie in no room")
        }
    }

    /// Whoever reads a room needs no room above it. An arrow that goes up stands in `House.upward` with its reason.
    @Test func roomsHaveNoCircles() throws {
        for module in try House(SourceTree.files(under: "Sources", [".swift"])).modules {
            let upward = House.upward.filter { $0.module == module.name }
            for arrow in module.arrows.filter({ arrow in
                !upward.contains { $0.from == arrow.from && $0.to == arrow.to }
            }).circles {
                Issue.record(
                    "\(module.name): \(arrow.from) → \(arrow.to) is in a circle: \(arrow.uses.joined(separator: ", "))")
            }
        }
    }

    /// An exception becomes smaller with the code and never larger: it lists its uses, and is refused where no circle needs it.
    @Test func everyArrowThatGoesUpIsAsItStands() throws {
        let modules = try House(SourceTree.files(under: "Sources", [".swift"])).modules
        for exception in House.upward {
            #expect(!exception.reason.isEmpty)
            let arrows = modules.first { $0.name == exception.module }?.arrows ?? []
            let arrow = arrows.circles.first { $0.from == exception.from && $0.to == exception.to }
            #expect(
                arrow?.uses == exception.uses,
                "\(exception.module): \(exception.from) → \(exception.to) in Tests/HouseTests/UpwardArrows.swift")
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
        #expect(house.modules[0].arrows.circles.isEmpty)
    }

    /// A room below a circle, and one above it, are in none.
    @Test func aCircleIsFound() {
        let house = House([
            SourceTree.File(path: "Sources/M/A/A.swift", text: "struct A { let b: B }\n"),
            SourceTree.File(path: "Sources/M/B/B.swift", text: "struct B { let c: C }\n"),
            SourceTree.File(path: "Sources/M/C/C.swift", text: "struct C { let a: [A], low: Low }\n"),
            SourceTree.File(path: "Sources/M/High/High.swift", text: "struct High { let a: A }\n"),
            SourceTree.File(path: "Sources/M/Low/Low.swift", text: "struct Low {}\n"),
        ])
        #expect(house.modules[0].arrows.circles.map { "\($0.from) → \($0.to)" } == ["A → B", "B → C", "C → A"])
    }
}
