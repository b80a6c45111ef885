import CMallocCount
import Glibc
import HotCache
import Synchronization
import Testing

/// A hit as the gateway makes it, in a function of its own, so that its machine code can be looked at.
@_cdecl("cardea_budget_hit") @inline(never)
public func budgetHit(
    _ reader: UnsafeRawPointer, _ slot: UnsafeRawPointer, _ now: UInt64, _ target: UnsafeMutableRawPointer
) -> Int {
    let slot = slot.assumingMemoryBound(to: Slot.self).pointee
    switch reader.assumingMemoryBound(to: Reader.self).pointee.lookup(slot, now: now) {
    case .miss: return -1
    case .refreshDue: return -2
    case .hit(let view):
        guard let source = view.bytes.baseAddress else { return 0 }
        target.copyMemory(from: source, byteCount: view.bytes.count)
        return view.bytes.count
    }
}

/// The same with a shared write in it, to see that the check sees one.
@_cdecl("cardea_budget_swap") @inline(never)
public func budgetSwap(_ memory: UnsafeMutableRawPointer, _ value: UInt64) -> UInt64 {
    memory.assumingMemoryBound(to: Atomic<UInt64>.self).pointee.exchange(value, ordering: .sequentiallyConsistent)
}

/// What a hit is made of, read from the release build: no instruction that locks the bus, no reference count, no exclusivity check.
///
/// x86-64 only: there such instructions carry `lock` or are an `xchg` with memory. On arm64 the corresponding test would look for
/// exclusive loads and stores and the LSE atomics; it is not written, because no such machine was there to try it on.
@Suite struct InstructionTests {
    /// The machine code of a symbol that matches, in the file that this test is in.
    static func code(of pattern: String) throws -> [String] {
        let here: @convention(c) (UnsafeMutableRawPointer, UInt64) -> UInt64 = budgetSwap
        let address = unsafeBitCast(here, to: UInt.self)
        let maps = try lines(of: "cat /proc/\(getpid())/maps")
        let map = try #require(
            maps.first { line in
                let range = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
                return range.count == 2 && range[0] <= address && address < range[1]
            })
        let file = try #require(map.firstIndex(of: "/").map { String(map[$0...]) })
        let symbols = try lines(of: "nm '\(file)' | grep -E ' [tT] ' | grep -E '\(pattern)' | cut -d' ' -f3")
        // A function and its specialisations.
        try #require(!symbols.isEmpty, "\(pattern)")
        return try symbols.flatMap { symbol in
            try lines(of: "objdump -d --no-show-raw-insn --disassemble='\(symbol)' '\(file)'").filter {
                $0.hasPrefix(" ")
            }
        }
    }

    static func lines(of command: String) throws -> [String] {
        let stream = try #require(popen(command, "r"))
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&buffer, 1, buffer.count, stream), count > 0 { text += buffer[..<count] }
        try #require(pclose(stream) == 0, "\(command)")
        return text.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    }

    /// An exchange with memory locks the bus without saying so.
    static func locks(_ instruction: String) -> Bool {
        instruction.contains("lock ") || instruction.contains("xchg") && instruction.contains("(")
            || instruction.contains("mfence")
    }

    static func calls(_ code: [String]) -> [String] {
        code.filter { $0.contains("call") }.map { String($0.drop { $0 != "<" }) }
    }

    #if arch(x86_64)
        @Test(
            .enabled(if: cardea_counts_mallocs() == 1, "machine code is looked at in release builds"),
            arguments: ["Budgets9budgetHit", "HotCache6ReaderV6lookup_3now"])
        func `a lookup locks nothing and counts no references`(symbol: String) throws {
            let code = try Self.code(of: symbol)
            #expect(code.count > 10)
            #expect(code.filter(Self.locks) == [])
            let counting = Self.calls(code).filter {
                $0.contains("swift_retain") || $0.contains("swift_release") || $0.contains("swift_beginAccess")
                    || $0.contains("alloc")
            }
            #expect(counting == [])
        }

        @Test(.enabled(if: cardea_counts_mallocs() == 1, "machine code is looked at in release builds"))
        func `a hit calls nothing but the copy`() throws {
            let calls = try Self.calls(Self.code(of: "Budgets9budgetHit"))
            #expect(calls.allSatisfy { $0.contains("memcpy") || $0.contains("memmove") })
        }

        @Test(.enabled(if: cardea_counts_mallocs() == 1, "machine code is looked at in release builds"))
        func `an exchange would be seen`() throws {
            #expect(try Self.code(of: "Budgets10budgetSwap").contains(where: Self.locks))
        }
    #endif

    @Test func `the function that is looked at hits`() throws {
        let cache = HotCache(readers: 1, slots: 1, byteLimit: 1 << 12)
        let reader = cache.makeReader(0)
        reader.enterTick()
        var slot = try #require(cache.allocateSlot())
        let fields = RecordFields(refreshAt: .max, servedUntil: 9, expiresAt: 9, generation: 1)
        cache.publish(slot: slot, record: fields, bytes: Array("Authorization: x".utf8))
        var target = [UInt8](repeating: 0, count: 32)
        let count = withUnsafePointer(to: reader) { budgetHit($0, &slot, 1, &target) }
        #expect(count == 16 && target.starts(with: Array("Authorization: x".utf8)))
        #expect(withUnsafePointer(to: reader) { budgetHit($0, &slot, 9, &target) } == -1)
        var word: UInt64 = 1
        #expect(budgetSwap(&word, 2) == 1 && word == 2)
    }
}
