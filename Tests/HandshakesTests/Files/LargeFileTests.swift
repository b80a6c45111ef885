import TemporaryFolder
import Testing

@testable import Configuration
@testable import Handshakes

/// What a file of many routes and identities needs, and what must come out of it as it does of a small one.
@Suite struct LargeFileTests {
    @Test func namesThatAreMadeGoOnWhereTheyEnded() {
        let open = "{listen: \"127.0.0.1:1\", to: \"https://u\", use: none}"
        let other = "{listen: \"127.0.0.1:2\", to: \"https://u\", use: none}"
        let trial = Trial("routes: [\([open, open, other, open, other, open].joined(separator: ", "))]")
        #expect(
            trial.result.configuration?.routes.map(\.name) == [
                "127.0.0.1:1", "127.0.0.1:1#2", "127.0.0.1:2", "127.0.0.1:1#3", "127.0.0.1:2#2", "127.0.0.1:1#4",
            ])
    }

    /// Who closes the circle is told; who leads into it from outside is not.
    @Test func circlesOfExchangesAreFoundAtAnyLength() {
        func exchange(_ name: String, of other: String) -> String {
            "\(name): {oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: {identity: \(other)}}}"
        }
        let links = ["d": "a", "a": "b", "b": "c", "c": "a", "e": "d", "f": "f"].sorted { $0.key < $1.key }
        let trial = Trial(
            "identities: {\(links.map { exchange($0.key, of: $0.value) }.joined(separator: ", "))}\nroutes: []")
        #expect(
            trial.errors.filter { $0.contains("leads back") } == [
                "'subject_token' of identity 'c' leads back to the identity itself",
                "'subject_token' of identity 'f' leads back to the identity itself",
            ])
    }

    @Test func includedFilesAddUp() throws {
        let scratch = Scratch()
        for part in 0..<3 {
            scratch.write(
                "part\(part).yaml",
                """
                identities: {i\(part): {static: {value: env:V}}, same: {static: {value: env:V}}}
                routes: [{name: r\(part), listen: "unix:/\(part)", to: "https://u", use: i\(part)}]
                """)
        }
        let trial = Trial(.file(scratch.write("all.yaml", "include: [part0.yaml, part1.yaml, part2.yaml]")))
        #expect(trial.draft?.identities.map(\.name) == ["i0", "same", "i1", "i2"])
        #expect(trial.draft?.routes.map(\.name) == ["r0", "r1", "r2"])
        #expect(
            trial.errors == (1...2).map { _ in "'same' is given twice; first in \(scratch.path)/part0.yaml:1" })
    }
}
