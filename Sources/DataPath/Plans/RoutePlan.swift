package import HTTP1
package import Handshakes
package import HotCache
internal import Octets
internal import Reactor
package import Tokens

/// A route as the data path needs it: compiled from the configuration once, immutable, shared by all loops.
package final class RoutePlan: Sendable {
    /// Position in its plan.
    let index: Int
    /// Names the route in mail to the keeper, over reloads; never given to another one.
    package let number: Int
    let edition: Edition
    package let name: String
    /// Number of the name in access records.
    let logName: UInt16
    /// The same of the identity; 0 for none.
    let identityLogName: UInt16
    package let matches: RouteMatch
    let admission: Admission
    package let upstream: UpstreamPlan
    /// Stands before every path toward the upstream; empty or without a trailing slash.
    package let pathPrefix: String
    package let edits: RequestEdits
    let answerEdits: ResponseEdits
    package let identity: IdentityPlan?
    package let injection: Injection?
    /// The account of the caller's connection that the upstream gets.
    let forwarding: ForwardedHop
    let answerNotes: AnswerNotes
    package let correlation: CorrelationPlan
    /// A caller's `Authorization` reaches the upstream, so it may authenticate the connection (`UpstreamOwner`).
    let bindsConnections: Bool
    /// The identity authenticates connections in the name of each request's subject.
    let ownsBySubject: Bool
    /// Connections of the route's upstream may have an owner, by either.
    let ownsConnections: Bool
    /// The field that carries the credential, in lower case: HTTP/2 never indexes it.
    let secretName: [UInt8]
    /// The credential is kept out of answers.
    package let conceals: Bool
    /// The slot of a route whose access key is known from the configuration; nil for none and for challenge-driven identities.
    let slot: Slot?
    /// Where the end user comes from, where each has a token; then `slot` is of no token and names the users' key space.
    package let subject: SubjectPlan?
    /// The knowledge that was gathered of a challenge-driven route: written by the keeper.
    let learned: Published<LearnedSnapshot>?
    /// Where a token is good for one URL (`token_scope: url`), the space of the URLs' keys.
    let urls: Slot?
    package let strictPaths: Bool
    /// The same number for routes that are equal in `use`, `callers`, `subject` and `to`: a request may take one for the other.
    let standing: Int
    /// A path that leads here is held against what a less exact server would make of it.
    let readsPathsTwice: Bool
    package let replay: Exchange.ReplayPolicy
    /// Upper-case methods whose requests may be replayed; empty: all.
    package let replayMethods: [[UInt8]]
    /// Bytes of a request body that are kept for a replay.
    package let replayBody: Int
    /// The way in which larger bodies are sent, and those whose length is not announced.
    package let largeBody: BodyCaution.Way
    package let passesFinalRefusal: Bool
    /// Nanoseconds.
    let answerTimeout: UInt64
    let idleTimeout: UInt64
    /// How long a request goes on whose caller has closed its side before the answer.
    let halfClosedTimeout: UInt64
    /// The route answers token requests itself; its upstream is then never connected to.
    let tokenStub: TokenStubPlan?
    /// Nil where no program is confined.
    let placeholders: PlaceholderPlan?
    /// Number of identity and origin in the audit log.
    let usePlace: UInt16
    /// Nil for a route with one identity. Of a list each identity has a plan of the route, and all share this.
    package let choice: SchemeChoice?
    /// The plans of a list's identities; those have none.
    package let alternatives: [RoutePlan]
    /// This plan stands in the listeners' tables for the plans of a list, and is itself used until one is chosen.
    let isList: Bool
    /// Requests wait until the last byte of their body has come: its digest may be part of a credential.
    let signsBody: Bool

    package init(
        index: Int, number: Int, edition: Edition, name: String, logName: UInt16, identityLogName: UInt16 = 0,
        matches: RouteMatch,
        admission: Admission, upstream: UpstreamPlan, pathPrefix: String, edits: RequestEdits,
        answerEdits: consuming ResponseEdits, identity: IdentityPlan?, injection: Injection?, forwarding: ForwardedHop,
        answerNotes: AnswerNotes, correlation: CorrelationPlan = CorrelationPlan(), slot: Slot?,
        subject: SubjectPlan? = nil,
        learned: Published<LearnedSnapshot>?, urls: Slot? = nil,
        strictPaths: Bool, standing: Int = -1, replay: Exchange.ReplayPolicy, replayMethods: [[UInt8]], replayBody: Int,
        largeBody: BodyCaution.Way,
        passesFinalRefusal: Bool, answerTimeout: UInt64, idleTimeout: UInt64, halfClosedTimeout: UInt64 = 1_000_000_000,
        tokenStub: TokenStubPlan? = nil, placeholders: PlaceholderPlan? = nil, usePlace: UInt16 = 0,
        conceals: Bool = false, choice: SchemeChoice? = nil, alternatives: [RoutePlan] = [],
        signsBody: Bool? = nil
    ) {
        self.index = index
        self.number = number
        self.edition = edition
        self.name = name
        self.logName = logName
        self.identityLogName = identityLogName
        self.matches = matches
        self.admission = admission
        self.upstream = upstream
        self.pathPrefix = pathPrefix
        self.edits = edits
        self.answerEdits = answerEdits
        self.identity = identity
        self.injection = injection
        self.forwarding = forwarding
        self.answerNotes = answerNotes
        self.correlation = correlation
        bindsConnections = edits.passesAuthorization
        ownsBySubject = subject != nil && identity?.bindsConnections == true
        ownsConnections = bindsConnections || ownsBySubject
        secretName = Self.secretName(injection, identity, injection?.place ?? edits.place)
        self.slot = slot
        self.subject = subject
        self.learned = learned
        self.urls = urls
        self.strictPaths = strictPaths
        self.standing = standing
        if case .exact = matches.path { readsPathsTwice = false } else { readsPathsTwice = strictPaths }
        self.replay = replay
        self.replayMethods = replayMethods
        self.replayBody = replayBody
        self.largeBody = largeBody
        self.passesFinalRefusal = passesFinalRefusal
        self.answerTimeout = answerTimeout
        self.idleTimeout = idleTimeout
        self.halfClosedTimeout = halfClosedTimeout
        self.tokenStub = tokenStub
        self.placeholders = placeholders
        self.usePlace = usePlace
        self.conceals = conceals
        self.choice = choice
        self.alternatives = alternatives
        isList = !alternatives.isEmpty
        self.signsBody = signsBody ?? (identity?.signsBody == true)
    }
}

extension RoutePlan {
    /// The route comes from the configuration; the others were made for a destination of a caller's choice.
    var isConfigured: Bool { index >= 0 }

    /// The credential stands in `Cookie`, whether it is one cookie or a list of cookies.
    var carriesCookies: Bool { secretName.elementsEqual("cookie".utf8) }

    /// The part of a credential that only the upstream may know: the name of a scheme in `Authorization` is none of it.
    func secretPart(of credential: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let lineStart = injection?.before.count ?? identity?.linePrefix
        guard secretName.elementsEqual("authorization".utf8), lineStart == "authorization: ".utf8.count,
            let blank = credential.firstIndex(of: 0x20), credential[..<blank].allSatisfy(\.isTokenCharacter)
        else { return credential }
        return UnsafeRawBufferPointer(rebasing: credential[(blank + 1)...])
    }

    /// Whether requests with this credential are refused, as it is too short to be told from other text in answers.
    package func cannotConceal(_ credential: UnsafeRawBufferPointer) -> Bool {
        conceals && secretPart(of: credential).count < Concealment.shortest
    }

    private static func secretName(_ injection: Injection?, _ identity: IdentityPlan?, _ place: CredentialPlace)
        -> [UInt8]
    {
        guard let identity else { return [] }
        if place == .cookie { return Array("cookie".utf8) }
        let name =
            injection.map { Array($0.before.prefix { $0 != 0x3a }) }
            ?? Array(identity.handshake.injection(for: []).name.utf8)
        return name.map { $0 >= 0x41 && $0 <= 0x5a ? $0 | 0x20 : $0 }
    }

    /// The bytes around the token where the route has a field line, a parameter or a cookie of its own.
    package struct Injection: Sendable {
        package let before: [UInt8]
        package let after: [UInt8]
        package let place: CredentialPlace

        package init(before: [UInt8], after: [UInt8], place: CredentialPlace) {
            self.before = before
            self.after = after
            self.place = place
        }
    }

    /// Lines of our own in answers.
    package struct AnswerNotes: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `Cache-Control: private` where a credential was sent.
        package static let keepsFromSharedCaches = AnswerNotes(rawValue: 1)
        package static let serverTiming = AnswerNotes(rawValue: 2)
        /// The request's id in `X-Request-Id`; the upstream's own field is deleted for it.
        package static let requestID = AnswerNotes(rawValue: 4)
    }
}

/// An identity as the data path needs it.
package final class IdentityPlan: Sendable {
    package let index: Int
    package let name: String
    package let handshake: any Handshake
    /// Statuses in which a challenge may hide; at most a handful.
    package let inspectedStatuses: [Int]
    /// Any of `inspectedStatuses` refuses the credential.
    let refusesByStatus: Bool
    /// The route counts a 403 as a refusal of the credential, not as a word on the user's rights.
    let isRefusedBy403: Bool
    /// Nanoseconds that a caller waits for a token at most.
    package let acquireTimeout: UInt64
    /// Successful answers are told to the keeper until it says that it knows: `basic` is on probation until then.
    package let reportsSuccess: Bool
    /// The URL told to the issuer is the one that the caller used, not the upstream's.
    package let resourceFromCaller: Bool
    /// The TLS layer shows the credential; nothing is looked up or put into a request.
    package let isTokenless: Bool
    /// Its credentials are good for one request; nothing of them is in the hot cache.
    let isOneTime: Bool
    /// Its credentials authenticate the connection that they go out on.
    package let bindsConnections: Bool
    /// The answer to a challenge goes out on the connection that brought it.
    let answersInPlace: Bool
    /// Tells of such connections which of them count.
    package let connections: ConnectionEpoch
    /// Bytes before the token in the ready line.
    let linePrefix: Int
    /// Answers of `inspectedStatuses` with a JSON body are held until that has been seen.
    let readsAnswers: Bool
    /// The digest of a request's body is part of its credential.
    let signsBody: Bool
    /// Makes the credential of each request; the ready line then holds its material. Nil for all others.
    package let signer: (any RequestSigner)?
    // Facts about the signer, for every request to ask: to look into an existential value would copy it first.
    let signs: Bool
    let usesNonces: Bool
    let answersNonces: Bool
    /// A challenge counts for the request that it refuses, and for no other.
    let answersForRequest: Bool

    package init(
        index: Int, name: String, handshake: any Handshake, acquireTimeout: UInt64, reportsSuccess: Bool,
        resourceFromCaller: Bool, isTokenless: Bool, statuses: [Int]?, signer: (any RequestSigner)? = nil,
        connections: ConnectionEpoch? = nil
    ) {
        self.index = index
        self.name = name
        self.handshake = handshake
        self.isTokenless = isTokenless
        isOneTime = handshake is any OneTimeHandshake
        bindsConnections = handshake.bindsConnections
        self.connections = connections ?? ConnectionEpoch()
        self.signer = signer
        readsAnswers = handshake.readsBody
        signs = signer != nil
        signsBody = signer?.readsBody == true
        usesNonces = signer?.nonceRule == .ofOrigin
        answersForRequest = signer?.nonceRule == .ofRequest
        answersNonces = signer?.nonceRule == .ofConnection || answersForRequest
        answersInPlace = answersNonces || bindsConnections
        isRefusedBy403 = statuses?.contains(403) == true
        switch (handshake.statusRule, statuses) {
        case (.refusals(let always), let statuses?):
            refusesByStatus = true
            inspectedStatuses = statuses + always
        case (.inspected, let statuses?):
            refusesByStatus = false
            inspectedStatuses = statuses
        case (.known, _), (_, nil):
            refusesByStatus = false
            inspectedStatuses = handshake.inspectedStatuses
        }
        self.acquireTimeout = acquireTimeout
        self.reportsSuccess = reportsSuccess
        self.resourceFromCaller = resourceFromCaller
        let empty = handshake.injection(for: [])
        linePrefix = empty.name.utf8.count + 2 + empty.value.count
    }
}

/// Which requests a route takes.
package struct RouteMatch: Sendable {
    package var host: Host = .any
    package var path: Path = .any
    /// Ports of the server that a proxy's caller names.
    package var ports: [UInt16] = []
    /// Methods as written on the wire; empty: all.
    package var methods: [[UInt8]] = []
    package var headers: [(name: [UInt8], value: [UInt8])] = []

    package init() {}

    package enum Host: Sendable {
        case any
        /// Lower case, without a port.
        case exact([UInt8])
        /// `*.example.com`: exactly one label before the suffix, which begins with a dot.
        case oneLabel(suffix: [UInt8])
    }

    package enum Path: Sendable {
        case any
        case exact([UInt8])
        case prefix([UInt8])
    }
}

/// Whom a route admits. Everything that is written must hold; a refusal never falls through to the next route.
package struct Admission: Sendable {
    package var from: From = .local
    /// User ids admitted on a unix socket; empty: any that can open it.
    package var unixUsers: [UInt32] = []
    /// DNS names (lower case), URIs or mail addresses of which the caller's certificate must have one; empty: no condition.
    package var tlsNames: [[UInt8]] = []
    /// The token that the request has to bring; nil: none.
    package var token: CallerToken?
    package var browsers = false
    /// Neither a token nor a certificate is asked for.
    package var restsOnAddress = true
    /// Names by which a request may call us, where the Host is checked.
    package var hosts = HostRule()

    package init() {}

    package enum From: Sendable {
        case local, any
        case networks([AddressRange])
    }
}
