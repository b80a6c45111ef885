internal import DataPath
internal import Tokens

/// A request's ticket, as loops and as machines write it.
extension Ticket {
    init(_ ticket: ScoutMachine.Ticket) { self.init(loop: ticket.loop, number: ticket.number) }

    var scout: ScoutMachine.Ticket { ScoutMachine.Ticket(loop: loop, number: number) }
}
