import Testing

@testable import Handshakes

/// Who may be acted for, and that no subject becomes another principal than the one of its name in the realm.
@Suite struct NegotiateUsersTests {
    private static func users(_ allow: [String], deny: [String] = [], prefix: String = "", suffix: String = "")
        -> NegotiateUsers
    {
        NegotiateUsers(
            realm: "CORP.EXAMPLE", allow: allow.map { .init($0) }, deny: deny.map { .init($0) }, prefix: prefix,
            suffix: suffix)
    }

    private static func refusal(of subject: String, by users: NegotiateUsers) -> NegotiateUsers.Refusal? {
        do {
            let principal = try users.principal(of: subject)
            Issue.record("\(subject.debugDescription) became \(principal)")
            return nil
        } catch { return error }
    }

    @Test(arguments: ["anna", "a", "süß", "anna meier", "a.b-c_d+e", "#x", "ανна", String(repeating: "x", count: 256)])
    func aNameStandsInTheRealm(name: String) throws {
        #expect(try Self.users([name]).principal(of: name) == "\(name)@CORP.EXAMPLE")
    }

    @Test(arguments: [
        "", " ", " anna", "anna ", "anna\u{A0}", "anna@CORP.EXAMPLE", "anna@OTHER", "@", "anna@", "HTTP/host", "/",
        "anna\\",
        "an\\@na", "an\u{0}na", "\u{0}", "an\na", "an\u{7F}na", "an\u{85}na", "an\u{200B}na", "an\u{202E}na",
        "\u{FEFF}anna",
        "an\u{2028}na", "an\u{E000}na", String(repeating: "x", count: 257), String(repeating: "é", count: 129),
    ])
    func aTextThatIsNoNameIsRefused(subject: String) {
        // Even where somebody allows it.
        #expect(Self.refusal(of: subject, by: Self.users([subject, "*"])) == .malformed)
    }

    @Test(arguments: [
        ("anna", ["anna"], true), ("Anna", ["anna"], false), ("ann", ["anna"], false), ("anna2", ["anna"], false),
        ("sales-1", ["sales-*"], true), ("sales-", ["sales-*"], true), ("presales-1", ["sales-*"], false),
        ("x.ext", ["*.ext"], true), ("ext", ["*.ext"], false), ("anyone", ["*"], true), ("b", ["a", "b"], true),
        ("anna", [], false),
        // The same to an eye and to a string's equality, and not the same octets.
        ("e\u{301}", ["\u{E9}"], false), ("\u{E9}", ["\u{E9}"], true),
        // Directories may take them for plain letters or blanks.
        ("\u{E9}va", ["*"], false), ("\u{FF41}dmin", ["*"], false), ("an na", ["*"], false),
        ("sales-ä", ["sales-*"], false),
        ("sales-ä", ["sales-ä"], true),
    ])
    func allowNamesUsers(name: String, allow: [String], isAllowed: Bool) throws {
        let users = Self.users(allow)
        guard isAllowed else {
            #expect(Self.refusal(of: name, by: users) == .notAllowed)
            return
        }
        #expect(try users.principal(of: name) == "\(name)@CORP.EXAMPLE")
    }

    @Test(arguments: [
        ("admin", ["admin"]), ("ADMIN", ["admin"]), ("Admin", ["aDMIN"]), ("adm-anna", ["adm-*"]),
        ("ADM-anna", ["adm-*"]),
        ("anna-da", ["*-DA"]), ("krbtgt", []), ("KrbTGT", []), ("host$", []), ("$", []),
    ])
    func denyWins(name: String, deny: [String]) {
        #expect(Self.refusal(of: name, by: Self.users(["*", name], deny: deny)) == .denied)
    }

    @Test func whatIsStrippedHasToBeThere() throws {
        let mail = Self.users(["anna"], suffix: "@corp.example")
        #expect(try mail.principal(of: "anna@corp.example") == "anna@CORP.EXAMPLE")
        #expect(Self.refusal(of: "anna", by: mail) == .otherForm)
        #expect(Self.refusal(of: "anna@CORP.EXAMPLE", by: mail) == .otherForm)
        #expect(Self.refusal(of: "anna@corp.example.evil", by: mail) == .otherForm)
        #expect(Self.refusal(of: "@corp.example", by: mail) == .malformed)
        #expect(Self.refusal(of: "anna@x@corp.example", by: mail) == .malformed)
        #expect(Self.refusal(of: "admin@corp.example", by: mail) == .notAllowed)
        let workload = Self.users(["anna"], prefix: "spiffe://corp.example/user/")
        #expect(try workload.principal(of: "spiffe://corp.example/user/anna") == "anna@CORP.EXAMPLE")
        #expect(Self.refusal(of: "spiffe://corp.example/user/anna/x", by: workload) == .malformed)
        #expect(Self.refusal(of: "spiffe://corp.example/host/anna", by: workload) == .otherForm)
        // A subject that is both texts at once, with less between them than nothing.
        let both = Self.users(["*"], prefix: "aba", suffix: "bab")
        #expect(Self.refusal(of: "abab", by: both) == .otherForm)
        #expect(Self.refusal(of: "ababab", by: both) == .malformed)
        #expect(try both.principal(of: "abaxbab") == "x@CORP.EXAMPLE")
        // Half of a letter is no name.
        let cut = Self.users(["*"], prefix: "a")
        #expect(Self.refusal(of: "a", by: cut) == .malformed)
    }

    @Test func noWordOfASubjectIsInARefusal() {
        for refusal in NegotiateUsers.Refusal.allCases { #expect(!refusal.description.isEmpty) }
        #expect(NegotiateUsers.Rule("a*b*").isUnclear && NegotiateUsers.Rule("**").isUnclear)
        #expect(!NegotiateUsers.Rule("a*").isUnclear && NegotiateUsers.Rule("*").isOpen)
        for realm in ["CORP.EXAMPLE", "corp", "A-B_C"] { #expect(NegotiateUsers.isRealm(realm)) }
        for realm in ["", "A@B", "A/B", "A\\B", "A B", "Ä", "A:B", "A\u{0}", String(repeating: "A", count: 256)] {
            #expect(!NegotiateUsers.isRealm(realm))
        }
    }
}
