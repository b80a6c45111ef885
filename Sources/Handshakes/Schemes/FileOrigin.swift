package import Configuration

/// The file's origin, beside that of the tokens' keys.
package typealias FileOrigin = Origin
