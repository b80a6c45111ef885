import TLS
import TemporaryFolder
import Testing

@testable import DataPath
@testable import TLSTests

/// Authorities that are read from files: a broken file is told once and leaves those before in force.
@Suite struct TrustAnchorsTests {
    private let folder = Scratch()
    private let files: Certificates

    init() throws { files = try Certificates.shared.get() }

    private func anchors(_ names: String..., systemFile: String? = nil) -> TrustAnchors {
        TrustAnchors(names.map { $0 == "system" ? .system : .file(folder.path + "/" + $0) }, systemFile: systemFile)
    }

    @Test func authoritiesCountOnceAllOfThemWereRead() throws {
        folder.write("a.pem", files.bytes("ca.pem"))
        let anchors = anchors("a.pem", "b.pem")
        // Nothing was read, and nothing is known to be wrong.
        #expect(anchors.fault == nil && anchors.validities.isEmpty)
        #expect(throws: TLSFault.self) { try anchors.current() }
        let version = anchors.version
        #expect(anchors.reload() == (false, true) && anchors.reload() == (false, false))
        let fault = try #require(anchors.fault)
        #expect(fault.reason.contains("b.pem") && !fault.keepsFormer && anchors.version == version)
        do throws(TLSFault) {
            _ = try anchors.current()
            Issue.record("half of the authorities count")
        } catch { #expect(error.message == fault.reason) }
        folder.write("b.pem", files.bytes("unknown-ca.pem"))
        #expect(anchors.reload() == (true, false) && anchors.version > version && anchors.fault == nil)
        #expect(try anchors.current().count == 2)
        #expect(anchors.validities.map(\.file) == ["a.pem", "b.pem"].map { folder.path + "/" + $0 })
    }

    @Test func theAuthoritiesOfBeforeStayWhereAFileIsBroken() throws {
        folder.write("a.pem", files.bytes("ca.pem"))
        let anchors = anchors("a.pem")
        #expect(anchors.reload() == (true, false) && anchors.reload() == (false, false))
        let (version, before) = (anchors.version, try anchors.current())
        folder.write("a.pem", "no certificate")
        #expect(anchors.reload() == (false, true) && anchors.version == version)
        #expect(anchors.fault?.keepsFormer == true)
        #expect(try anchors.current() == before)
        // Another reason is told, too.
        folder.write("a.pem", [UInt8](repeating: 0x2d, count: 2 << 20))
        #expect(anchors.reload() == (false, true) && anchors.fault?.reason.contains("larger than 1 MiB") == true)
        // The same authorities are nothing new.
        folder.write("a.pem", files.bytes("ca.pem"))
        #expect(anchors.reload() == (false, false) && anchors.fault == nil && anchors.version == version)
        folder.write("a.pem", files.bytes("unknown-ca.pem"))
        #expect(anchors.reload() == (true, false) && anchors.version > version)
    }

    /// OpenSSL reads the machine's authorities by itself, so that a change of their file is all that there is to see.
    @Test func aChangeOfTheSystemsFileIsNoticed() {
        let path = folder.write("system.pem", files.bytes("ca.pem"))
        let anchors = anchors("system", systemFile: path)
        #expect(anchors.reload() == (true, false) && anchors.reload() == (false, false))
        folder.write("system.pem", files.bytes("ca.pem") + [10])
        #expect(anchors.reload() == (true, false) && anchors.reload() == (false, false))
        // A file that is being replaced is not read as an empty one.
        let gone = self.anchors("system", systemFile: folder.path + "/none")
        #expect(gone.reload() == (true, false) && gone.reload() == (false, false) && gone.validities.isEmpty)
    }

    @Test func authoritiesAreNamedByWhereTheyComeFrom() {
        #expect(anchors("system", "a.pem").name == "system, \(folder.path)/a.pem" && anchors("system").name == "system")
    }

    /// A check of the configuration finds what a start would find.
    @Test func theFaultOfOneFileIsFoundBeforeItIsUsed() throws {
        #expect(TrustAnchors.fault(of: folder.write("good.pem", files.bytes("ca.pem"))) == nil)
        let garbage = try #require(TrustAnchors.fault(of: folder.write("bad.pem", "no certificate")))
        #expect(!garbage.isUnreadable && garbage.reason.contains("bad.pem"))
        let missing = try #require(TrustAnchors.fault(of: folder.path + "/none.pem"))
        #expect(missing.isUnreadable && missing.reason.contains("No such file or directory"))
    }
}
