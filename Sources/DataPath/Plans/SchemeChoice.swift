internal import HTTP1
internal import Octets
internal import Synchronization

/// `use` with a list: which of a route's identities answers its upstream. The first challenge chooses it for all loops, and the plan of the next
/// edition begins with it.
package final class SchemeChoice: Sendable {
    /// The route that it is of, by name: among routes with equal lists a plan's successor takes over its own.
    package let route: String
    package let origin: String
    /// By position in the list.
    package let members: [Member]
    package let allowsDowngrade: Bool
    /// The position in the list; -1 before any challenge has been answered.
    ///
    /// Relaxed: nothing else is read by it, and loops that look at the same time may each choose. They do so by the same list and the same
    /// rule, and a request that met the older choice is answered by what it met.
    private let chosen = Atomic<Int>(-1)

    package struct Member: Sendable, Equatable {
        package let identity: String
        /// The schemes of challenges that it answers.
        package let schemes: [String]

        package init(identity: String, schemes: [String]) {
            self.identity = identity
            self.schemes = schemes
        }
    }

    /// - Parameter earlier: of the plan that runs. Another list, or another upstream, begins without a choice.
    package init(
        route: String, origin: String, members: [Member], allowsDowngrade: Bool, after earlier: [SchemeChoice] = []
    ) {
        self.route = route
        self.origin = origin
        self.members = members
        self.allowsDowngrade = allowsDowngrade
        let same = earlier.filter { $0.origin == origin && $0.members == members }
        if let position = (same.first { $0.route == route } ?? same.first)?.position { choose(position) }
    }

    /// - Returns: nil before any challenge.
    package var position: Int? {
        let position = chosen.load(ordering: .relaxed)
        return position < 0 ? nil : position
    }

    func choose(_ position: Int) { chosen.store(position, ordering: .relaxed) }

    /// The effect of a challenge on the choice.
    enum Verdict: Equatable {
        /// The identity that answered, or none where no request was answered yet, is as good as any.
        case keep
        /// Another identity answers from here on.
        case choose(Int)
        /// Only weaker schemes are offered, and the route does not go down.
        case refuse(offered: Int)
    }

    /// - Parameters:
    ///   - answering: the position of the identity that sent the request, or that the route has chosen; nil where there is none.
    ///   - offers: whether the challenge offers what an identity answers.
    func verdict(answering: Int?, offers: (Int) -> Bool) -> Verdict {
        if let answering, offers(answering) { return .keep }
        guard let first = members.indices.first(where: offers) else { return .keep }
        guard let answering, first > answering, !allowsDowngrade else { return .choose(first) }
        return .refuse(offered: first)
    }
}

extension SchemeChoice.Member {
    /// A challenge of its scheme may still be one that it cannot use, which its handshake says.
    func answers(_ challenges: [AuthChallenge]) -> Bool {
        challenges.contains { challenge in schemes.contains { challenge.scheme.matches($0) } }
    }
}
