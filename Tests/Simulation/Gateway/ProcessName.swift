/// One life of a gateway: a process that is killed and started again has another.
struct ProcessName: Hashable, CustomStringConvertible {
    let gateway: Int
    let life: Int
    var description: String { "g\(gateway).\(life)" }
}
