internal import Configuration
internal import Numbers
internal import Octets
internal import XML

/// A request of a recipe: render, book, send, judge, take.
extension RecipeRun {
    struct StepAnswer {
        var taken: [String: Secret]
        var sentAt: UInt64
        /// Nanoseconds.
        var lifetime: UInt64?
    }

    func perform(_ step: RecipeStep) async throws(GrantFailure) -> Outcome<StepAnswer> {
        // Everything in a request has the same instant and the same random value.
        values.wallSeconds = handshake.world.wallSeconds
        values.entropy = handshake.world.random(16)
        let secrets = step.secrets
        try await read(secrets)
        // Made before the attempt is booked: what cannot be rendered must not cost one.
        var call = try call(for: step, secrets: secrets)
        defer { call.body.wipe() }
        let begun = await environment.now()
        var line = RunTrace.Step(
            name: step.name, layer: step.layer.rawValue, request: "\(step.method) \(step.origin)\(step.target)",
            status: nil, duration: 0, taken: [], outcome: "")
        // Before the attempt is booked, too: nobody could tell what became of one whose answer cannot be read.
        if (step.take + [recipe.attempts].compactMap(\.self)).contains(where: \.isXML) {
            do throws(XMLFault) { try XMLDocument.requireLibrary() } catch { throw .configuration(reason: "\(error)") }
        }
        if let key = step.attemptKey {
            do throws(GrantFailure) { try await environment.spendAttempt(user: recipe.accountName, secret: key) } catch
            {
                line.outcome = "not sent: \(error)"
                trace(line)
                throw error
            }
        }
        let answer: IssuerAnswer
        do throws(IssuerFault) {
            answer = try await environment.send(call)
        } catch {
            if !secrets.isEmpty { await environment.settleAttempt(error.provablyUnsent ? .notSent : .unknown) }
            line.outcome = "\(error.kind)"
            trace(line)
            throw GrantFailure(error, step: step.name)
        }
        line.status = answer.status
        let now = await environment.now()
        line.duration = now > begun ? now - begun : 0
        let verdict = RecipeVerdict(
            answer, of: step, sendsSecret: !secrets.isEmpty, attempts: recipe.attempts,
            wallSeconds: values.wallSeconds)
        if !secrets.isEmpty { await environment.settleAttempt(verdict.attempt) }
        switch verdict.meaning {
        case .success(let taken, let lifetime):
            values.steps[step.name] = taken
            line.taken = RunTrace.Value.list(taken)
            line.outcome = "good"
            trace(line)
            return .done(StepAnswer(taken: taken, sentAt: answer.sentAt, lifetime: lifetime))
        case .stale(let reason):
            line.outcome = "refused what a lower layer keeps"
            trace(line)
            return .stale(reason: reason)
        case .failure(let failure):
            line.outcome = "\(failure)"
            trace(line)
            throw failure
        }
    }

    private func trace(_ line: RunTrace.Step) {
        guard trace.steps.count < RunTrace.mostSteps else { return }
        trace.steps.append(line)
    }

    // MARK: - Request

    /// The kinds of bodies that values are taken out of.
    private static func accepted(_ takes: [RecipeTake]) -> String {
        var kinds: [String] = []
        for take in takes {
            let kind: String
            switch take.source {
            case .json: kind = "application/json"
            case .form: kind = "application/x-www-form-urlencoded"
            case .xml: kind = "application/xml, text/xml"
            case .header, .cookie, .param: continue
            }
            if !kinds.contains(kind) { kinds.append(kind) }
        }
        return kinds.isEmpty ? "*/*" : kinds.joined(separator: ", ")
    }

    private func call(for step: RecipeStep, secrets: Set<String>) throws(GrantFailure) -> IssuerCall {
        func fault(_ part: String, _ fault: RecipeValues.Fault) -> GrantFailure {
            .configuration(reason: "\(step.name): \(part): \(fault.reason)")
        }
        // Again here, although the file was checked: nothing that a secret is in leaves for another origin.
        for name in secrets.sorted() {
            guard recipe.secret(named: name)?.to.contains(step.origin) == true else {
                throw .configuration(reason: "\(step.name): secret \(name) must not go to \(step.origin)")
            }
        }
        var target: [UInt8]
        do throws(RecipeValues.Fault) { target = try values.bytes(of: step.target, for: .url) } catch {
            throw fault("URL", error)
        }
        defer { target.wipe() }
        guard let url = IssuerURL("\(step.origin)" + String(decoding: target, as: UTF8.self)) else {
            throw .configuration(reason: "\(step.name): the URL with its values is too long, or has a dot segment")
        }
        var headers: [(name: String, value: String)] = []
        for header in step.headers {
            do throws(RecipeValues.Fault) {
                var value = try values.bytes(of: header.value, for: .header)
                defer { value.wipe() }
                headers.append((header.name, String(decoding: value, as: UTF8.self)))
            } catch { throw fault(header.name, error) }
        }
        var body: [UInt8] = []
        do throws(RecipeValues.Fault) { body = try values.body(of: step.body) } catch { throw fault("body", error) }
        func add(_ name: String, _ value: String) {
            guard !headers.contains(where: { Array($0.name.utf8).matches(name) }) else { return }
            headers.append((name, value))
        }
        switch step.body {
        case .none: break
        case .json: add("Content-Type", "application/json")
        case .form: add("Content-Type", "application/x-www-form-urlencoded")
        case .text: add("Content-Type", "text/plain; charset=utf-8")
        }
        add(
            "Accept",
            Self.accepted(step.take))
        return IssuerCall(
            step: step.name, method: step.method, url: url, headers: headers, body: body,
            carriesPassword: !secrets.isEmpty)
    }
}

extension RecipeValues {
    func body(of body: RecipeStep.Body) throws(Fault) -> [UInt8] {
        switch body {
        case .none: return []
        case .text(let template): return try bytes(of: template, for: .text)
        case .json(let json):
            var result: [UInt8] = []
            try append(json, to: &result)
            guard result.count <= Recipe.Bound.body else { throw Fault("longer than 64 KiB") }
            return result
        case .form(let members):
            var result: [UInt8] = []
            for member in members {
                if !result.isEmpty { result.append(UInt8(ascii: "&")) }
                for byte in member.name.utf8 { result.appendFormEncoded(byte) }
                result.append(UInt8(ascii: "="))
                result += try bytes(of: member.value, for: .form)
            }
            guard result.count <= Recipe.Bound.body else { throw Fault("longer than 64 KiB") }
            return result
        }
    }

    private func append(_ json: RecipeJSON, to result: inout [UInt8]) throws(Fault) {
        switch json {
        case .literal(let text): result += Array(text.utf8)
        case .string(let template):
            result.append(UInt8(ascii: "\""))
            result += try bytes(of: template, for: .json)
            result.append(UInt8(ascii: "\""))
        case .list(let items):
            result.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { result.append(UInt8(ascii: ",")) }
                try append(item, to: &result)
            }
            result.append(UInt8(ascii: "]"))
        case .object(let members):
            result.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { result.append(UInt8(ascii: ",")) }
                result.append(UInt8(ascii: "\""))
                result.appendJSONEscaped(Array(member.name.utf8))
                result += Array("\":".utf8)
                try append(member.value, to: &result)
            }
            result.append(UInt8(ascii: "}"))
        }
    }
}

/// The meaning of an answer to its step, and to the attempt that it cost.
struct RecipeVerdict {
    enum Meaning {
        case success([String: Secret], lifetime: UInt64?)
        case stale(reason: String)
        case failure(GrantFailure)
    }

    let meaning: Meaning
    let attempt: AttemptOutcome

    /// - Parameters:
    ///   - attempts: where a refusal says how many are left.
    ///   - wallSeconds: our clock when the request was made, for a `lifetime` that is a moment; the issuer's own counts where it tells it.
    init(
        _ answer: IssuerAnswer, of step: RecipeStep, sendsSecret: Bool, attempts: RecipeTake? = nil,
        wallSeconds: Int64? = nil
    ) {
        let reading = RecipeAnswer(answer, for: step.take + [attempts].compactMap(\.self))
        let reason = "\(step.name): status \(answer.status)"
        if let stale = step.stale, reading.meets(stale) {
            // The kept value explains the refusal; the password was not to blame.
            self.init(.stale(reason: reason), .notSent)
        } else if reading.meets(step.rejected) {
            self.init(
                sendsSecret ? .failure(.credentialRejected(reason: reason)) : .stale(reason: reason),
                Self.rejection(reading, attempts))
        } else if step.accepted.isEmpty ? (200..<300).contains(answer.status) : step.accepted.contains(answer.status) {
            do throws(RecipeAnswer.Fault) {
                let taken = try reading.values(of: step.take)
                let lifetime = try Self.lifetime(taken[RecipeTake.lifetime], now: answer.issuerTime ?? wallSeconds)
                self.init(.success(taken, lifetime: lifetime), .accepted)
            } catch {
                // Some say no with a 200: without the values it was no success.
                self.init(.failure(.issuerAnswerInvalid(reason: "\(reason): \(error.reason)")), .unknown)
            }
        } else {
            self.init(Self.failure(answer, reason), Self.attempt(answer.status))
        }
    }

    /// An issuer that says nothing is not asked; one that says what cannot be read is taken to say none.
    private static func rejection(_ reading: RecipeAnswer, _ attempts: RecipeTake?) -> AttemptOutcome {
        guard let attempts, let said = try? reading.value(of: attempts) else { return .rejected }
        let left = said.withBytes { ReceivedNumber(decimal: $0)?.clamped(to: 0...Int64.max) }
        return .rejectedLeaving(left ?? 0)
    }

    private init(_ meaning: Meaning, _ attempt: AttemptOutcome) {
        self.meaning = meaning
        self.attempt = attempt
    }

    private static func failure(_ answer: IssuerAnswer, _ reason: String) -> Meaning {
        switch answer.status {
        case 300..<400: .failure(.configuration(reason: "\(reason): redirected instead of answered"))
        case 401, 403: .failure(.policyDenied(reason: reason))
        case 408, 425, 429, 500..<600:
            .failure(answer.unavailable(reason))
        case 400..<500: .failure(.configuration(reason: reason))
        default: .failure(.issuerAnswerInvalid(reason: reason))
        }
    }

    /// Only answers that come before any look at a password give the attempt back; of an unknown system nothing else is sure.
    private static func attempt(_ status: Int) -> AttemptOutcome {
        switch status {
        case 404, 405, 406, 408, 413, 414, 415, 425, 429, 431, 500..<600: .notSent
        default: .unknown
        }
    }

    /// - Parameter now: seconds since 1970.
    private static func lifetime(_ value: Secret?, now: Int64?) throws(RecipeAnswer.Fault) -> UInt64? {
        guard let value else { return nil }
        if let now, let end = value.withBytes({ InternetTime.seconds($0) }) {
            let (seconds, overflow) = end.subtractingReportingOverflow(now)
            guard !overflow, seconds > 0 else { throw .init("'lifetime' is over") }
            return min(TimeSpan(seconds, .seconds).nanoseconds, AccessGrant.longestLifetime)
        }
        let text = value.withBytes { String(decoding: $0.prefix(64), as: UTF8.self) }
        guard let seconds = RecipeLifetime.seconds(text) else {
            throw .init("'lifetime' is no positive number and no time of RFC 3339")
        }
        return TimeSpan(seconds: seconds).nanoseconds
    }
}
