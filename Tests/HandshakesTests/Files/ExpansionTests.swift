import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct ExpansionTests {
    static let environment = ["A": "1", "EMPTY": "", "NESTED": "${A}", "_x9": "y"]

    @Test(arguments: [
        ("", ""), ("plain", "plain"), ("${A}", "1"), ("x${A}y${A}", "x1y1"), ("${B:-d}", "d"), ("${A:-d}", "1"),
        ("${EMPTY:-d}", "d"), ("${EMPTY}", ""), ("$$", "$"), ("$${A}", "${A}"), ("$$$$", "$$"), ("$A", "$A"),
        ("a$", "a$"),
        ("${B:-}", ""), ("${B:-a:-b}", "a:-b"), ("${NESTED}", "${A}"), ("${_x9}", "y"), ("ü${A}ü", "ü1ü"),
        ("^(a)$", "^(a)$"),
    ])
    func expands(text: String, result: String) throws {
        #expect(try Expansion.expand(text) { Self.environment[$0] } == result)
    }

    @Test(arguments: [
        ("${", "'${' without '}'; a plain '$' before '{' is written '$${'"),
        ("${B}", "environment variable 'B' is not set; set it, or give it a default: '${B:-…}'"),
        ("${}", "'${}' is not '${NAME}' or '${NAME:-default}'"),
        ("${9}", "'${9}' is not '${NAME}' or '${NAME:-default}'"),
        ("${A B}", "'${A B}' is not '${NAME}' or '${NAME:-default}'"),
        ("${A-x}", "'${A-x}' is not '${NAME}' or '${NAME:-default}'"),
    ])
    func refuses(text: String, message: String) {
        #expect(throws: Expansion.Fault.self) { try Expansion.expand(text) { Self.environment[$0] } }
        do throws(Expansion.Fault) {
            _ = try Expansion.expand(text) { Self.environment[$0] }
        } catch {
            #expect(error.message == message)
        }
    }

    @Test func sizeIsBounded() {
        let long = String(repeating: "x", count: 40000)
        #expect(throws: Expansion.Fault.self) { try Expansion.expand("${L}${L}") { _ in long } }
    }

    @Test func afterParsingAndOfAnyType() throws {
        let trial = Trial(
            Trial.around(route: "timeouts: {connect: \"${T}\"}", top: "threads: ${N:-3}\nname: ${NAME}"),
            environment: ["T": "7s", "NAME": "x-y"])
        let configuration = try #require(trial.result.configuration)
        #expect(configuration.threads == 3)
        #expect(configuration.routes[0].timeouts.connect == .seconds(7))
        // Whatever a variable holds, it is one value.
        let inject = Trial(Trial.around(top: "name: ${NAME}"), environment: ["NAME": "a\nthreads: 9"])
        #expect(inject.errors == ["'name' must be a header name"])
    }

    @Test func aVariableNeverStandsInAMessage() {
        for line in [
            "threads: ${P}", "log: {level: \"${P}\"}", "shutdown: {linger: \"${P}\"}", "store: {key: \"${P}\"}",
            "admin: {listen: \"${P}\"}", "admin: {hosts: [\"${P}\"]}",
        ] {
            let trial = Trial(Trial.around(top: line), environment: ["P": "s3cr3t/="])
            #expect(trial.errors.count >= 1)
            #expect(!trial.result.diagnostics.map(\.description).joined().contains("s3cr3t"))
        }
        let route = Trial(Trial.around(route: "match: {host: \"${P}\"}"), environment: ["P": "s3cr3t/="])
        #expect(!route.result.diagnostics.map(\.description).joined().contains("s3cr3t"))
    }
}
