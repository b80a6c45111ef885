import Glibc
import TemporaryFolder
import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct SourceTests {
    private func find(_ argument: String? = nil, _ environment: [String: String] = [:], places: [String] = [])
        -> ConfigurationSource?
    {
        try? ConfigurationSource.find(argument: argument, environment: { environment[$0] }, places: places)
    }

    @Test func order() {
        let scratch = Scratch()
        let here = scratch.write("cardea.yaml", "threads: 1")
        let all = ["CARDEA_CONFIG": "/c", "CARDEA_CONFIG_YAML": "threads: 1", "CARDEA_TO": "https://u"]
        #expect(find("/a", all, places: [here]) == .file("/a"))
        #expect(find(nil, all, places: [here]) == .file("/c"))
        #expect(find(nil, all.filter { $0.key != "CARDEA_CONFIG" }, places: [here]) == .text("threads: 1"))
        #expect(
            find(nil, ["CARDEA_TO": "https://u", "CARDEA_CONFIG": ""], places: ["/nonexistent", here]) == .file(here))
        #expect(find(nil, ["CARDEA_TO": "https://u"], places: ["/nonexistent"]) == .environment)
        #expect(find() == nil)
        let text = ConfigurationSource.NotFound().description
        for place in [
            "--config", "CARDEA_CONFIG", "CARDEA_CONFIG_YAML", "./cardea.yaml", "/etc/cardea/cardea.yaml",
            "CARDEA_LISTEN",
        ] {
            #expect(text.contains(place))
        }
    }

    static let variables = [
        "CARDEA_LISTEN": "127.0.0.1:8080", "CARDEA_TO": "https://u", "CARDEA_TOKEN_URL": "https://i/t",
        "CARDEA_CLIENT_ID": "c${X}", "CARDEA_CLIENT_SECRET": "s",
    ]

    @Test func startWithoutAFile() throws {
        var variables = Self.variables
        variables["CARDEA_SCOPES"] = "a b,c"
        let configuration = try #require(Trial(.environment, environment: variables).result.configuration)
        #expect(configuration.routes.count == 1)
        #expect(configuration.routes[0].scopes == ["a", "b", "c"])
        #expect(configuration.routes[0].use == .identity("default"))
        let identity = try #require(configuration.identities.first)
        #expect((identity.scheme as? OAuth2Scheme)?.settings.clientID == "c${X}")
        #expect(identity.secrets == [.init("client_secret", .environment(name: "CARDEA_CLIENT_SECRET"))])
        variables["CARDEA_CLIENT_SECRET"] = nil
        variables["CARDEA_CLIENT_SECRET_FILE"] = "/run/secrets/c"
        let file = try #require(Trial(.environment, environment: variables).result.configuration)
        #expect(file.secrets.map(\.reference) == [.file(path: "/run/secrets/c")])
    }

    @Test func whatIsMissingIsNamed() {
        let trial = Trial(.environment, environment: ["CARDEA_TO": "https://u"])
        #expect(trial.result.configuration == nil)
        #expect(
            trial.result.errors.map(\.mark.file) == [
                "CARDEA_CLIENT_ID", "CARDEA_CLIENT_SECRET", "CARDEA_LISTEN", "CARDEA_TOKEN_URL",
            ])
        var both = Self.variables
        both["CARDEA_CLIENT_SECRET_FILE"] = "/x"
        #expect(Trial(.environment, environment: both).errors.count == 1)
        var wrong = Self.variables
        wrong["CARDEA_TO"] = "ftp://u"
        #expect(Trial(.environment, environment: wrong).result.errors.map(\.mark.file) == ["CARDEA_TO"])
    }

    @Test func missingAndUnreadableFiles() {
        let scratch = Scratch()
        #expect(Trial(.file(scratch.path + "/none")).errors == ["No such file or directory"])
        #expect(Trial(.file(scratch.path)).errors == ["not a regular file"])
        mkfifo(scratch.path + "/pipe", 0o600)
        #expect(Trial(.file(scratch.path + "/pipe")).errors == ["not a regular file"])
    }

    // MARK: - Include

    @Test func includesAddUp() throws {
        let scratch = Scratch()
        mkdir(scratch.path + "/d", 0o700)
        let main = scratch.write(
            "main.yaml",
            "include: [d, one.yaml]\nthreads: 2\n" + Trial.around().split(separator: "\n").joined(separator: "\n"))
        scratch.write("d/b.yaml", "routes: [{name: b, listen: \"127.0.0.1:2\", to: \"https://u\", use: x}]")
        scratch.write("d/a.yaml", "identities: {x: {static: {value: \"env:${N}\"}}}\nstore: {path: /s, key: env:K}")
        scratch.write("d/c.txt", "not: read")
        scratch.write("d/.hidden.yaml", "not: read")
        scratch.write(
            "one.yaml",
            "routes: [{name: c, listen: l, to: \"https://u\", use: none}]\nlisteners: {l: {address: \"127.0.0.1:3\"}}")
        let trial = Trial(.file(main), environment: ["N": "V"])
        #expect(trial.lines == [])
        let configuration = try #require(trial.result.configuration)
        #expect(configuration.routes.map(\.name) == ["127.0.0.1:8080", "b", "c"])
        #expect(configuration.identities.map(\.name) == ["a", "x"])
        #expect(configuration.store.path == "/s")
        #expect(configuration.routes[1].mark.file == scratch.path + "/d/b.yaml")
        #expect(trial.result.files.count == 5)
    }

    @Test func namesGivenTwice() {
        let scratch = Scratch()
        let main = scratch.write("main.yaml", Trial.around(top: "include: [two.yaml, two.yaml, none.yaml]\nthreads: 1"))
        scratch.write(
            "two.yaml",
            "identities: {a: {static: {value: env:V}}, z: {static: {value: env:V}}}\nthreads: 2\ninclude: main.yaml\nwhat: 1"
        )
        let trial = Trial(.file(main))
        #expect(
            trial.result.errors.map { $0.description.replacing(scratch.path + "/", with: "") } == [
                "main.yaml:5:21 error '\(scratch.path)/two.yaml' is included twice".replacing(
                    scratch.path + "/", with: ""),
                "main.yaml:5:31 error 'include' of none.yaml: No such file or directory",
                "two.yaml:1:14 error 'a' is given twice; first in main.yaml:2",
                "two.yaml:2:1 error 'threads' is given twice; first in main.yaml:6",
                "two.yaml:3:1 error an included file cannot include others",
                "two.yaml:4:1 error unknown key 'what' in the file; known: identities, routes, listeners, store, admin, name, limits, log, audit, tracing, shutdown, threads, sandbox, secret_files, nat64, defaults, include",
            ])
    }
}
