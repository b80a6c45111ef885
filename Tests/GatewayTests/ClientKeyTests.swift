import Configuration
import Testing

@testable import DataPath
@testable import Gateway
@testable import TLS

@Suite struct ClientKeyTests {
    private let day: Int64 = 86_400

    @Test func theLastFifthOfALifeAsksForRenewalAndThirtyDaysAreEnough() {
        let short = (first: Int64(0), last: Int64(3600))
        #expect(ExpiryState(of: short, at: 2879) == .good)
        #expect(ExpiryState(of: short, at: 2881) == .ending)
        #expect(ExpiryState(of: short, at: 3600) == .ending)
        #expect(ExpiryState(of: short, at: 3601) == .over)
        let long = (first: Int64(0), last: 3650 * day)
        #expect(ExpiryState(of: long, at: 3619 * day) == .good)
        #expect(ExpiryState(of: long, at: 3621 * day) == .ending)
        #expect(ExpiryState(of: (first: 10, last: 20), at: 9) == .notYet)
        #expect(ExpiryState(of: (first: 20, last: 10), at: 15) == .over)
    }

    private struct Broken: Error {}

    @Test func whatCannotBeReadLeavesTheOneBefore() {
        let keys = ClientKeys([ClientKeys.Files(certificate: "/nowhere") { throw Broken() }])
        let version = keys.version
        #expect(keys.reload().failed == [0])
        // Said once, and no change.
        #expect(keys.reload().failed == [])
        #expect(keys.version == version && keys.certificates.isEmpty)
        #expect(keys.contents[0].fault != nil)
    }

    @Test func sameFilesAreOneSet() {
        let compiler = IdentityCompiler(environment: { _ in nil }, secretFiles: .warn, persists: false)
        let files = ClientKeyFiles(certificate: "/nowhere", key: nil, password: nil)
        let one = compiler.clientKeys([files])
        let two = compiler.clientKeys([files])
        #expect(one != nil && one === two && compiler.keyCatalog.all.count == 1)
        #expect(compiler.clientKeys([]) == nil)
    }
}
