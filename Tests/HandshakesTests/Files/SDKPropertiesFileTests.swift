import Glibc
import TemporaryFolder
import Testing

@testable import Configuration
@testable import Handshakes

/// Properties of the IDM Mobile SDK in a file, and what of them names and addresses the identity.
@Suite struct SDKPropertiesFileTests {
    private let folder = TemporaryFolder("sdk")

    private func file(_ text: String) throws -> String {
        let path = folder.path + "/sdk.properties"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let all = bytes(text)
        try #require(write(descriptor, all, all.count) == all.count)
        return path
    }

    @Test func `a file of properties is read whole`() throws {
        let properties = try SDKProperties(file: try file("# by hand\nAuthServerType = X\nApplicationName = \"A B\"\n"))
        #expect(properties.all.map(\.name) == ["AuthServerType", "ApplicationName"])
        #expect(properties.all.map(\.value) == ["X", "A B"])
    }

    @Test func `quotes around a value go, and one alone stays`() throws {
        let properties = try SDKProperties(bytes("a = \"\"\nb = \"\nc = \"x\nd = y\"\ne = \"z\"\n"))
        #expect(properties.all.map(\.value) == ["", "\"", "\"x", "y\"", "z"])
    }

    @Test func `a file that cannot be read says so, and one without a property too`() throws {
        let gone = #expect(throws: SDKProperties.Fault.self) { try SDKProperties(file: folder.path + "/gone") }
        #expect(gone?.description.isEmpty == false)
        let empty = try file("# nothing\n")
        let none = #expect(throws: SDKProperties.Fault.self) { try SDKProperties(file: empty) }
        #expect(none?.description == "no property in it")
    }

    private func made(_ lines: [String], upstream: String? = nil) throws -> SDKImport {
        try SDKImport(SDKProperties(bytes(lines.joined(separator: "\n"))), upstream: upstream)
    }

    private static let basic = ["AuthServerType = HTTPBasicAuthentication", "ApplicationName = Bank App"]

    @Test func `an application's name becomes the identity's where the handshake has no use for it`() throws {
        let read = try made(Self.basic + ["LoginURL = https://bank.example.com/login"])
        #expect(read.yaml.contains("\"bank-app\":") && read.yaml.contains("https://bank.example.com\""))
        #expect(read.taken.contains { $0.name == "ApplicationName" && $0.value == "the identity's name" })
        #expect(read.left.isEmpty)
    }

    @Test func `properties without an address leave the upstream to be filled in`() throws {
        let read = try made(Self.basic)
        #expect(!read.taken.contains { $0.value == "to" } && !read.yaml.contains("bank.example.com"))
        let given = try made(Self.basic, upstream: "https://given.example.com")
        #expect(given.yaml.contains("https://given.example.com"))
    }

    @Test func `an address that is none is refused by the property's name`() throws {
        let fault = #expect(throws: SDKProperties.Fault.self) { try made(Self.basic + ["LoginURL = bank"]) }
        #expect(fault?.description.contains("is no http or https URL") == true)
    }
}
