internal import HTTP1
internal import Reactor
internal import TLS
internal import Telemetry

/// Log entries about things that others do: each kind has a rate of its own, because others may do them without end.
extension DataLoop {
    struct LogRates {
        var glitches = LogRate()
        var handshakes = LogRate()
        var unproven = LogRate()
        var foreignHosts = LogRate()
        var incomplete = LogRate()
        var concealed = LogRate()
        var offers = LogRate()
    }

    /// The consequence of an upstream's offer of schemes for a route with several identities.
    enum OfferOutcome {
        case chosen, weaker, refusedWeaker
    }

    func noteOffer(
        _ outcome: OfferOutcome, of member: SchemeChoice.Member, on route: RoutePlan, _ correlation: [LogField]
    ) {
        let fields = [LogField("route", .name(route.name)), LogField("identity", .name(member.identity))] + correlation
        switch outcome {
        case .chosen: events.log(.info, "scheme chosen", at: loop.now, within: &logRates.offers, fields)
        case .weaker:
            metrics.glitch(.weakerScheme)
            events.log(.warn, "weaker scheme chosen", at: loop.now, within: &logRates.offers, fields)
        case .refusedWeaker:
            metrics.glitch(.weakerSchemeRefused)
            events.log(.warn, "weaker scheme refused", at: loop.now, within: &logRates.offers, fields)
        }
    }

    /// - Parameters:
    ///   - reason: what an answer says that cannot be used, which is then logged.
    ///   - caller: whose request it answers.
    func noteGlitch(_ glitch: Glitch, reason: String? = nil, of caller: CallerConnection? = nil) {
        metrics.glitch(glitch)
        guard let caller, let route = caller.exchange.route, let reason else { return }
        events.log(
            .warn, "answer cannot be used", at: loop.now, within: &logRates.glitches,
            [LogField("route", .name(route.name)), LogField("reason", .name(reason))] + caller.correlationFields)
    }

    func noteHandshakeFailure(_ fault: TLSFault, listener: ListenerPlan) {
        metrics.glitch(.handshakeFailed)
        events.log(
            .info, "TLS handshake with a caller failed", at: loop.now, within: &logRates.handshakes,
            [LogField("listener", .name(listener.text)), LogField("reason", .name("\(fault)"))])
    }

    /// To the caller its connection just fails; here it is said why.
    func noteUnprovenUpstream(of listener: ListenerPlan, host: String, _ fault: Fault) {
        metrics.glitch(.unprovenUpstream)
        events.log(
            .warn, "no certificate is shown for a host whose upstream did not prove itself", at: loop.now,
            within: &logRates.unproven,
            [
                LogField("listener", .name(listener.text)), LogField("host", .name(host)),
                LogField("fault", .name(fault.kind.word)),
            ])
    }

    /// An upstream has shown a credential, which its caller does not get.
    /// - Parameter count: places in one piece of an answer.
    func noteConcealed(
        _ count: UInt64, on route: RoutePlan, _ correlation: @autoclosure () -> [LogField]
    ) {
        self.count(for: route) { $0.concealed(route: route.index, count) }
        events.log(
            .info, "a credential was kept out of an answer", at: loop.now, within: &logRates.concealed,
            [LogField("route", .name(route.name)), LogField("places", .count(Int64(clamping: count)))] + correlation())
    }

    /// A page that had its name lead here, or a name of ours that nobody has told.
    /// - Parameter correlation: the fields of the request's identifiers; made only if the event is logged.
    func noteForeignHost(
        _ host: UnsafeRawBufferPointer, listener: ListenerPlan, route: RoutePlan,
        _ correlation: @autoclosure () -> [LogField]
    ) {
        events.log(
            .warn, "a Host that is not served was asked for", at: loop.now, within: &logRates.foreignHosts,
            [
                LogField("host", .name(String(decoding: host.prefix(256), as: UTF8.self))),
                LogField("listener", .name(listener.text)), LogField("route", .name(route.name)),
                LogField("key", .word("hosts")),
            ] + correlation())
    }
}

extension DataLoop {
    /// Says of an answer that was cut short by whom, and where. A caller that leaves is no news.
    func noteIncomplete(_ caller: CallerConnection) {
        guard caller.exchange.record.incomplete != .caller else { return }
        events.log(
            .warn, "an answer was cut short", at: loop.now, within: &logRates.incomplete, incompleteFields(of: caller))
    }

    private func incompleteFields(of caller: CallerConnection) -> [LogField] {
        var fields = [LogField("side", .word(caller.exchange.record.incomplete.word))]
        if let fault = caller.exchange.record.fault { fields.append(LogField("fault", .name(fault.word))) }
        if let route = caller.exchange.route { fields.append(LogField("route", .name(route.name))) }
        fields.append(LogField("status", .count(Int64(caller.exchange.answer.status))))
        fields.append(LogField("after_bytes", .count(Int64(clamping: caller.answerBytes))))
        if let upstream = caller.exchange.record.upstreamAddress {
            fields.append(LogField("upstream", .address(upstream)))
        }
        return fields + caller.correlationFields
    }
}
