import Synchronization

@testable import Handshakes

/// Any bytes as what an issuer, an upstream and a browser answer to a flight of any scheme (`Course`): a grant that comes of it is bounded
/// and fit to be sent, words are fit to be read, each attempt of a password is settled, and no call goes where the configuration does not
/// send it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSchemes(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    expect(!Cast.members.isEmpty, "the configuration does not load")
    let input = UnsafeBufferPointer(start: start, count: count)
    guard let course = Course(input), course.place < Cast.members.count else { return -1 }
    // An input that knows a secret cannot be told from a gateway that tells it.
    guard !String(decoding: input, as: UTF8.self).contains(Cast.canary) else { return -1 }
    let member = Cast.members[course.place]
    let flight = Flight(course, member)
    let isOver = Mutex(false)
    let here = Here()
    Task(executorPreference: here) {
        await run(course, member.handshake, flight)
        if course.isRepeated { await run(course, member.handshake, flight) }
        isOver.withLock { $0 = true }
    }
    here.drain()
    expect(isOver.withLock { $0 }, "a flight waits for nothing")
    expect(flight.memory.isBalanced, "an attempt that is not settled")
    return 0
}

private func run(_ course: Course, _ handshake: any Handshake, _ flight: Flight) async {
    var wanted = Wanted(scopes: ["a"], upstreamOrigin: "https://u.example.com")
    do throws(GrantFailure) {
        switch course.errand {
        case .acquire: check(try await handshake.acquire(wanted, environment: flight), handshake)
        case .inquire: for words in try await handshake.inquire(environment: flight) { checkWords(words) }
        case .tryOut: if let trial = try await handshake.tryOut(wanted, environment: flight) { checkWords(trial.text) }
        case .revoke:
            guard let session = flight.memory.state.withLock({ $0.session }) else { return }
            _ = await handshake.revoke(session, environment: flight)
        case .login:
            guard let handshake = handshake as? any InteractiveHandshake else { return }
            try await handshake.reach(environment: flight)
            let grant = try await handshake.login(wanted, dialogue: flight, environment: flight)
            checkMaterial(grant.material)
            if let remark = grant.remark { checkWords(remark) }
            flight.memory.state.withLock { $0.session = grant.material }
            check(try await handshake.acquire(wanted, environment: flight), handshake)
        case .preview:
            guard let handshake = handshake as? any OneTimeHandshake else { return }
            let facts = try await handshake.preview(environment: flight)
            for fact in facts { checkWords("\(fact.name) \(fact.value)") }
        case .credential:
            guard let handshake = handshake as? any OneTimeHandshake else { return }
            let credential = try await handshake.credential(for: OneTimeNeed(resource: "CH1"), environment: flight)
            check(field: handshake.injection(for: credential.secret.withBytes { Array($0) }))
            guard let session = flight.memory.state.withLock({ $0.session }) else { return }
            for fact in handshake.facts(of: session) { checkWords("\(fact.name) \(fact.value)") }
        case .challenge:
            guard let challenge = challenge(course, handshake) else { return }
            wanted.challenge = challenge
            check(try await handshake.acquire(wanted, environment: flight), handshake)
        }
    } catch {
        checkWords("\(error)")
        checkWords(error.toldToCallers)
    }
}

/// The first answer as the upstream's.
private func challenge(_ course: Course, _ handshake: any Handshake) -> Challenge? {
    guard case .answer(let status, let fields, let body)? = course.answers.first else { return nil }
    let seen = UpstreamAnswer(
        status: status, fields: fields.map { (Array($0.name.utf8), Array($0.value.utf8)) }, body: body,
        requestURL: "https://u.example.com/x", requestMethod: Array("GET".utf8))
    switch handshake.judge(seen) {
    case .challenged(let challenge):
        expect(challenge.resource == "https://u.example.com/x", "another resource than was asked for")
        expect((0...9999).contains(challenge.level ?? 0), "a level out of bounds")
        expect(challenge.scopes.allSatisfy(isPlain), "a scope with control octets")
        if let error = challenge.error { checkWords(error) }
        return challenge
    case .unusable(let reason), .misconfigured(let reason):
        checkWords(reason)
        return nil
    case .none, .conflict: return nil
    }
}

private func check(_ grant: AccessGrant, _ handshake: any Handshake) {
    let token = grant.token.withBytes { Array($0) }
    expect(!token.isEmpty, "a token without an octet")
    expect((grant.lifetime ?? 0) <= AccessGrant.longestLifetime, "a token for ever")
    expect(grant.grantedScopes.map { $0 == $0.sorted() && $0.allSatisfy(isPlain) } ?? true, "scopes")
    check(field: handshake.injection(for: token))
}

private func check(field: InjectedField) {
    expect(isPlain(field.name) && !field.value.isEmpty, "a field that is none")
    expect(field.value.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }, "a credential that ends its line")
}

/// Runs a task's jobs on the thread that drains it.
private final class Here: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    func drain() {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
