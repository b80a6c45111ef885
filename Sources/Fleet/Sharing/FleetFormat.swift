/// How values, versions and news stand on the shared server (`store.shared.format`). Only a configuration says which; never the server, whose
/// writers are the ones that it is about.
public enum FleetFormat: String, Sendable, CaseIterable {
    /// The format of gateways that do not know the new one: a value is sealed, its version and its end are not, nor are news.
    case old
    /// Writes the old one, and the new one beside it; reads both. While gateways that know only the old one are about.
    case both
    /// Writes the new one alone and ignores what stands in the old one.
    case new

    var readsOld: Bool { self != .new }
    var readsNew: Bool { self != .old }
}
