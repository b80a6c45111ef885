/// The valid word that a mistyped one was most likely meant to be.
package enum NearestWord {
    /// nil where none is near: more than a third of the word, and more than one letter, would have to change.
    package static func of(_ word: String, in candidates: [String]) -> String? {
        // Numbers are not mistyped words: any version would be near any other.
        guard word.utf8.count <= 64, word.first?.isNumber != true else { return nil }
        var best: (word: String, distance: Int)?
        for candidate in candidates {
            let distance = distance(Array(word.lowercased().utf8), Array(candidate.utf8))
            if distance < best?.distance ?? .max { best = (candidate, distance) }
        }
        guard let best, best.distance <= max(1, max(word.utf8.count, best.word.utf8.count) / 3) else { return nil }
        return best.word
    }

    /// Insertions, deletions, replacements and swaps of neighbours.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        if a.isEmpty || b.isEmpty { return max(a.count, b.count) }
        var beforeLast: [Int] = []
        var last = Array(0...b.count)
        for i in 1...a.count {
            var row = [i] + Array(repeating: 0, count: b.count)
            for j in 1...b.count {
                let change = a[i - 1] == b[j - 1] ? 0 : 1
                row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + change)
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    row[j] = min(row[j], beforeLast[j - 2] + 1)
                }
            }
            (beforeLast, last) = (last, row)
        }
        return last[b.count]
    }
}
