import Glibc
import Testing

@testable import DataPath
@testable import TLS

/// Leaves for hosts whose TLS is ended here: as long as their upstreams' proofs and their own lives are good.
@Suite struct InterceptionPlanTests {
    private let now = Int64(time(nil))
    private let mint: CertificateMint

    init() throws {
        mint = try CertificateMint(
            pem: CertificateMint.makeAuthority(name: "t", hosts: ["*.many.test", "api.test"], days: 3, now: now).pair)
    }

    private func plan() throws -> InterceptionPlan {
        try InterceptionPlan(
            file: "ca.pem", mint: mint,
            hosts: [.exact(Array("api.test".utf8)), .oneLabel(suffix: Array(".many.test".utf8))],
            protocols: ["http/1.1"], tickets: TicketKeys())
    }

    @Test func hostsAreCoveredByNameOrByOneLabel() throws {
        let plan = try plan()
        for host in ["api.test", "API.test", "a.many.test"] { #expect(plan.covers(host), "\(host)") }
        for host in ["many.test", "a.b.many.test", "x.api.test", "api.tests", ""] { #expect(!plan.covers(host)) }
        #expect(plan.authorityValidity.notAfter == mint.notAfter)
    }

    /// An upstream's proof is good for ten minutes; the leaf itself serves on, with another proof.
    @Test func aLeafIsShownWhileTheProofOfItsUpstreamIsGood() throws {
        let plan = try plan()
        #expect(plan.leaf(for: "api.test", now: now) == nil)
        let leaf = try plan.verified("api.test", now: now)
        #expect(leaf.names.fit("api.test") != .none)
        #expect(plan.leaf(for: "api.test", now: now) === leaf && plan.leaf(for: "api.test", now: now + 599) === leaf)
        #expect(plan.leaf(for: "api.test", now: now + 600) == nil && plan.leaf(for: "a.many.test", now: now) == nil)
        // A clock that was set back proves nothing.
        #expect(plan.leaf(for: "api.test", now: now - 1) == nil)
        #expect(try plan.verified("api.test", now: now + 600) === leaf)
        #expect(plan.leaf(for: "api.test", now: now + 601) === leaf)
    }

    /// A leaf that ends within the hour is replaced by another one, which its authority outlives or not.
    @Test func aLeafThatEndsSoonIsMintedAnew() throws {
        let plan = try plan()
        let leaf = try plan.verified("api.test", now: now)
        let late = leaf.notAfter - 3600
        #expect(try plan.verified("api.test", now: late - 1) === leaf)
        #expect(plan.leaf(for: "api.test", now: late - 1) === leaf && plan.leaf(for: "api.test", now: late) == nil)
        let next = try plan.verified("api.test", now: late)
        #expect(next !== leaf && next.notAfter > leaf.notAfter && next.notAfter <= mint.notAfter)
        #expect(plan.leaf(for: "api.test", now: late) === next)
    }

    /// In its authority's last hour no leaf is better than the one that there is.
    @Test func aLeafThatEndsWithItsAuthorityIsShownToTheEnd() throws {
        let plan = try plan()
        let end = mint.notAfter
        let leaf = try plan.verified("api.test", now: end - 500)
        #expect(leaf.notAfter == end && plan.leaf(for: "api.test", now: end - 400) === leaf)
        #expect(plan.leaf(for: "api.test", now: end - 1) === leaf && plan.leaf(for: "api.test", now: end) == nil)
    }

    /// Hosts come from callers where a pattern stands for many of them.
    @Test func leavesAreBounded() throws {
        let plan = try plan()
        for number in 0..<InterceptionPlan.leafLimit { _ = try plan.verified("h\(number).many.test", now: now) }
        let first = try #require(plan.leaf(for: "h0.many.test", now: now))
        // A host that is known takes no new place.
        #expect(try plan.verified("h0.many.test", now: now) === first)
        let next = try plan.verified("api.test", now: now)
        #expect(plan.leaf(for: "h0.many.test", now: now) == nil && plan.leaf(for: "api.test", now: now) === next)
    }
}
