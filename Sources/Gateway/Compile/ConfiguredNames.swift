internal import Configuration

// The configuration's words for things that other modules have words of their own for. This file imports the one module alone, so that
// each name can mean only one thing here.

typealias ConfiguredRoute = Route
typealias ConfiguredIdentity = Identity
