internal import HTTP1

extension CallerConnection {
    /// The fault of a request of a confined program that holds a placeholder where no credential of the route's replaces it. The head is
    /// read, and no body.
    func refuseMisplaced(_ placeholders: PlaceholderPlan, on route: RoutePlan) -> Fault? {
        let bytes = input.octets
        for part in data.requestHead.placeholderParts(in: bytes, route.edits, fields: placeholders.fields) {
            if let objection = placeholders.objection(to: part, in: bytes) {
                return Fault(.placeholderMisplaced, detail: objection)
            }
        }
        return nil
    }
}
