/// The kinds of stored material that a changed identity leaves behind (docs/design/tokens.md#rule-8). Data, so that the rule can be read.
public enum Material: CaseIterable, Sendable {
    /// Registration, device id, key pair.
    case durable
    /// A refresh token that a person's login brought.
    case humanRefreshToken
    /// Every other session material.
    case session
    case accessToken
}

/// A change of an identity that has material.
public enum IdentityChange: CaseIterable, Sendable {
    case digestChanged
    case secretChanged
    /// `token`, `network` or the name.
    case settingsChanged
    case purge
    case logout
}

/// The fate of the material.
public enum Disposition: Equatable, Sendable {
    case keep
    case drop
    /// Never used, kept for `Orphans.keptForMilliseconds`, back if the same digest returns.
    case orphan
}

/// The rules for material whose identity changes or goes.
public enum Orphans {
    /// 30 days, in milliseconds of the wall clock: rows outlive boots.
    public static let keptForMilliseconds: Int64 = 30 * 86_400_000

    /// The one table of these rules.
    public static func disposition(of material: Material, after change: IdentityChange) -> Disposition {
        switch (change, material) {
        case (.secretChanged, _), (.settingsChanged, _): .keep
        case (.digestChanged, .durable), (.digestChanged, .humanRefreshToken): .orphan
        case (.digestChanged, .session), (.digestChanged, .accessToken): .drop
        // A purge gets new tokens; it does not send a person to the login page or register a device anew.
        case (.purge, .durable), (.purge, .humanRefreshToken): .keep
        case (.purge, .session), (.purge, .accessToken): .drop
        case (.logout, _): .drop
        }
    }
}
