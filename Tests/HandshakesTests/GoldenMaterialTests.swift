import GoldenFiles
import Testing

@testable import Handshakes

/// The material of registrations and sessions, as schemes encode it for rows of a store and for a fleet.
@Suite struct GoldenMaterialTests {
    private static let file = GoldenFile(
        "materials.txt", "Scheme, what it keeps, and the octets of it in hexadecimal.",
        cost:
            "registrations and sessions of before an upgrade count as none: clients register again, and people log in again."
    )
    /// A private key on P-256 that serves nothing else, in DER.
    private static let key = octets(
        "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b02010104201e4175cac3959075a909f74a9cab"
            + "ea21e8e8c526a53ed463459878a35c0d28dba14403420004864644d792eb8157b2d1bfd42a2df72139d925c60ff8fbd1294c"
            + "78f59328e34ede0a784fa567da59c3267b2d2ba1d901d730e1e07457ff30dd0eb9e042344619")

    @Test func everyMaterialHasTheOctetsThatItHad() throws {
        var lines: [String] = []
        func add(_ what: String, _ material: Secret) {
            lines.append("\(what): \(hexadecimal(material.withBytes { Array($0) }))")
        }
        add(
            "recipe values of two steps",
            RecipeMaterial.encode(["login": ["session": Secret("s"), "b": Secret("")], "a": ["z": Secret([0, 255])]]))
        add("recipe nothing", RecipeMaterial.encode([:]))
        add("oauth2 registration", RegisteredClient(id: "c1", secret: Secret("s1")).material)
        add("oauth2 registration without a secret", RegisteredClient(id: "c1", secret: nil).material)
        let proof = try #require(DPoPKey(Secret(Self.key)))
        add("oauth2 proof key", proof.material)
        add("oauth2 token bound to a key", BoundToken.encode(Secret("t1"), boundTo: proof))
        let client = RecipeMaterial.encode(["client": MobileFirstClient.values(id: "device-1", key: Secret(Self.key))])
        add("mobilefirst registration", client)
        let material = LayerMaterial(bytes: client, obtainedAt: 1, lifetime: nil)
        let registered = try #require(MobileFirstClient(material))
        #expect(registered.id == "device-1")
        let session = MobileFirstSession(client: registered, checks: ["PinCode", "UserLogin"], obtainedAt: 1).joined(
            with: nil)
        add("mobilefirst session", session.bytes)
        #expect(MobileFirstSession(session)?.checks == ["PinCode", "UserLogin"])
        let grant = AccessGrant(token: Secret("jwt"), tokenType: "Bearer", lifetime: 60, sentAt: 1)
        let issued = OAMIssuedClient.material(
            grant, type: OAMIssuedClient.jwtBearer,
            others: [
                "refresh": Secret("r"), "user": Secret("u"), "token_url": Secret("https://t.example.com/t"),
                "device_store": Secret(""),
            ])
        add("oam_oauth client assertion", issued.bytes)
        let read = try #require(OAMIssuedClient(issued))
        #expect(read.tokenURL != nil && read.usesDeviceStore && read.life == 60 && read.refreshToken == Secret("r"))
        if let difference = Self.file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    /// Material of older versions is read for what it was.
    @Test func whatIsRecordedIsRead() throws {
        let recorded = Dictionary(
            Self.file.lines.compactMap { line in
                line.firstRange(of: ": ").map {
                    (String(line[..<$0.lowerBound]), Secret(octets(line[$0.upperBound...])))
                }
            },
            uniquingKeysWith: { first, _ in first })
        func layer(_ what: String) throws -> LayerMaterial {
            LayerMaterial(bytes: try #require(recorded[what], "\(what)"), obtainedAt: 1, lifetime: nil)
        }
        #expect(RegisteredClient(try layer("oauth2 registration").bytes)?.secret == Secret("s1"))
        #expect(MobileFirstClient(try layer("mobilefirst registration"))?.id == "device-1")
        #expect(MobileFirstSession(try layer("mobilefirst session"))?.client.id == "device-1")
        #expect(OAMIssuedClient(try layer("oam_oauth client assertion"))?.assertion == Secret("jwt"))
        #expect(DPoPKey(try layer("oauth2 proof key").bytes) != nil)
        let values = RecipeMaterial.decode(try layer("recipe values of two steps").bytes)
        #expect(values?["login"]?["session"] == Secret("s") && values?["a"]?["z"] == Secret([0, 255]))
        try layer("oauth2 token bound to a key").bytes.withBytes { bytes in
            let bound = try #require(BoundToken(bytes))
            #expect(
                Array(bound.token) == Array("t1".utf8)
                    && DPoPKey(bound.key)?.thumbprint == String(decoding: bound.thumbprint, as: UTF8.self))
        }
    }
}
