public import Gateway

/// The body of `GET /run?identity=NAME`: the last run of its recipe. In JSON the names are in snake_case.
public struct RunDocument: AdminDocument, Sendable, Equatable {
    /// The identity's name in the configuration.
    public var identity: String
    /// nil: it has not run since the start, or it is no recipe.
    public var run: RunReport?
}
