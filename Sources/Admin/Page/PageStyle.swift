/// The page's looks. In the document itself, so that a saved page and one behind a tunnel look alike; the Content-Security-Policy admits
/// it by digest.
enum PageStyle {
    /// CSP source expression (CSP3 §2.3.1) of `sheet`. A test says the new one when the sheet changes.
    static let digest = "sha256-36wVSEATaeWt9CQ7Hb1KF3K313keLDtkm0YRYVwH92s="

    static let sheet: StaticString = """
        :root{color-scheme:light dark;--page:#f6f5f2;--card:#fff;--ink:#1e242c;--soft:#66707c;--line:#e3e1db;--track:#e9e7e1;\
        --good:#23705f;--good-soft:#a9d3c8;--busy:#3b6ea8;--busy-soft:#b3cbe6;--warn:#8f5708;--warn-soft:#ecd0a0;\
        --bad:#b3372f;--bad-soft:#eec1bd;--past:#cfccc4}
        @media(prefers-color-scheme:dark){:root{--page:#14171b;--card:#1c2026;--ink:#e4e7eb;--soft:#929ca8;--line:#2b3139;--track:#272c34;\
        --good:#4fb69e;--good-soft:#2c5f54;--busy:#6fa3de;--busy-soft:#30496a;--warn:#dca24a;--warn-soft:#5f4722;\
        --bad:#ec7b72;--bad-soft:#6a2f2c;--past:#3d444e}}
        *{box-sizing:border-box}
        body{margin:0 auto;padding:28px 24px 40px;max-width:1120px;background:var(--page);color:var(--ink);\
        font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
        a{color:inherit;text-decoration-color:var(--soft);text-underline-offset:3px}
        p,dl,dd,h1,h2,h3{margin:0}
        code{font:.92em ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere;\
        padding:1px 6px;border-radius:4px;display:inline-block;max-width:100%;line-height:1.35;background:var(--card);border:1px solid var(--line);user-select:all}
        .quiet,.version,.scheme,.legend,footer{color:var(--soft)}
        header{display:flex;align-items:baseline;gap:10px;flex-wrap:wrap;margin-bottom:22px}
        h1{font-size:22px;font-weight:650;letter-spacing:-.01em}
        .mark{width:24px;height:24px;align-self:center;fill:none;stroke:var(--soft);stroke-width:2;stroke-linejoin:round}
        .mark .pin{stroke:var(--good);stroke-width:3;stroke-linecap:round}
        .gap{flex:1}
        .pace{white-space:nowrap;color:var(--soft)}.pace a{color:var(--ink);margin-left:6px}
        .chip{display:inline-block;padding:0 9px;border-radius:99px;font-size:12.5px;line-height:21px;font-weight:550;\
        white-space:nowrap;color:var(--soft);background:var(--track)}
        .chip.good{color:var(--good);background:color-mix(in srgb,var(--good) 14%,var(--card))}
        .chip.busy{color:var(--busy);background:color-mix(in srgb,var(--busy) 14%,var(--card))}
        .chip.warn{color:var(--warn);background:color-mix(in srgb,var(--warn) 16%,var(--card))}
        .chip.bad{color:var(--card);background:var(--bad)}
        .card,.tiles>div{background:var(--card);border:1px solid var(--line);border-radius:10px}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px;margin-bottom:18px}
        .tiles>div{padding:12px 16px}
        .tiles dt,.counts dt,thead th{font-size:12.5px;color:var(--soft);font-weight:450}
        .tiles dd{font-size:21px;font-weight:600;line-height:1.35;letter-spacing:-.01em}
        .tiles .note{font-size:12.5px;font-weight:400;color:var(--soft);letter-spacing:0}
        .tiles .warn dd{color:var(--warn)}
        .notice{padding:10px 16px;margin-bottom:10px;border-radius:8px;overflow-wrap:anywhere;\
        background:color-mix(in srgb,var(--warn) 10%,var(--card));border:1px solid var(--warn-soft)}
        .notice.bad{background:color-mix(in srgb,var(--bad) 9%,var(--card));border-color:var(--bad-soft)}
        .title{display:flex;justify-content:space-between;align-items:baseline;flex-wrap:wrap;gap:4px 16px;margin:30px 2px 10px}
        h2{font-size:16px;font-weight:620}
        .legend{font-size:12.5px}
        .k{display:inline-block;width:14px;height:7px;border-radius:2px;margin:0 4px 1px 10px}
        .k.past{background:var(--past)}.k.left{background:var(--good)}.k.ahead{background:var(--good-soft)}
        .k.s2{background:var(--good)}.k.s3{background:var(--busy)}.k.s4{background:var(--warn)}.k.s5{background:var(--bad)}
        .identity{display:grid;grid-template-columns:236px minmax(0,1fr) 178px;gap:8px 26px;padding:13px 18px;margin-bottom:10px}
        .identity.troubled{border-color:var(--bad-soft)}
        h3{font-size:16px;font-weight:620;overflow-wrap:anywhere}
        .who{display:flex;flex-wrap:wrap;align-content:flex-start;align-items:baseline;gap:2px 10px}
        .scheme{font-size:12.5px;flex-basis:100%}
        .token+.token{margin-top:14px}
        .key{display:flex;flex-wrap:wrap;gap:0 12px;align-items:baseline;overflow-wrap:anywhere}
        .key b{font-weight:580}
        .detail{font-size:13.5px}
        .state{margin-left:auto;font-size:13px;color:var(--soft)}
        .state.good{color:var(--good)}.state.busy{color:var(--busy)}.state.warn{color:var(--warn)}.state.bad{color:var(--bad)}
        .bar{display:block;width:100%;height:9px;margin:5px 0 4px;border-radius:5px;overflow:hidden;background:var(--track)}
        .past{fill:var(--past)}.left{fill:var(--good)}.ahead{fill:var(--good-soft)}
        .bar.busy .left{fill:var(--busy)}.bar.busy .ahead{fill:var(--busy-soft)}
        .bar.warn .left{fill:var(--warn)}.bar.warn .ahead{fill:var(--warn-soft)}
        .bar.bad .left,.bar.bad .ahead{fill:var(--bad-soft)}
        .bar path{fill:none;vector-effect:non-scaling-stroke;stroke-width:2}
        .tick{stroke:var(--card)}
        .now{stroke:var(--ink)}
        .times{display:flex;justify-content:space-between;gap:4px 16px;flex-wrap:wrap;font-size:13px;color:var(--soft)}
        .failure{margin-top:8px;font-size:13.5px;color:var(--soft);overflow-wrap:anywhere}
        .failure strong{font-weight:550;color:var(--warn)}
        .troubled .failure strong{color:var(--bad)}
        .more{margin-top:10px;font-size:13.5px}
        .counts{display:grid;grid-template-columns:repeat(3,1fr);gap:8px;text-align:right;align-self:start}
        .counts dd{font-size:17px;font-weight:560}
        .counts .none dd{color:var(--soft);font-weight:400}
        .counts .warn dd{color:var(--warn)}.counts .busy dd{color:var(--busy)}
        table{width:100%;border-collapse:collapse}
        th,td{padding:11px 14px;text-align:left;vertical-align:top;font-weight:400}
        thead th{padding:9px 14px}
        th:first-child{padding-left:18px;width:25%}td:last-child,th:last-child{padding-right:18px}
        tbody tr{border-top:1px solid var(--line)}
        tbody th b{font-weight:580;display:block;overflow-wrap:anywhere}
        tbody th .quiet{font-size:13px;overflow-wrap:anywhere}
        .n{text-align:right;white-space:nowrap}
        .spark+span{display:inline-block;min-width:54px}
        .answers{width:28%;min-width:200px}
        .answers .bar{margin-top:7px}
        .classes{display:flex;flex-wrap:wrap;gap:0 12px;font-size:13px}
        rect.s1,rect.so{fill:var(--past)}rect.s2{fill:var(--good)}rect.s3{fill:var(--busy)}rect.s4{fill:var(--warn)}rect.s5{fill:var(--bad)}
        span.s4{color:var(--warn)}span.s5{color:var(--bad)}
        .spark{display:inline-block;width:64px;height:20px;margin-right:10px;vertical-align:-4px;overflow:visible}
        .spark path{fill:none;stroke:var(--busy);stroke-width:1.5;vector-effect:non-scaling-stroke;stroke-linejoin:round}
        .spark .area{stroke:none;fill:color-mix(in srgb,var(--busy) 16%,transparent)}
        form{display:inline-block;margin:0}
        button{font:inherit;font-size:13px;line-height:1.4;padding:3px 12px;margin:0 0 0 8px;border-radius:7px;cursor:pointer;\
        color:var(--ink);background:var(--card);border:1px solid var(--past)}
        button:hover{border-color:var(--ink)}
        a:focus-visible,button:focus-visible{outline:2px solid var(--busy);outline-offset:2px}
        .acts{grid-column:1/-1;text-align:right}
        .notice.good{background:color-mix(in srgb,var(--good) 10%,var(--card));border-color:var(--good-soft)}
        td .chip+.quiet{font-size:13px;overflow-wrap:anywhere}
        footer{margin-top:34px;font-size:13px;overflow-wrap:anywhere}
        @media(max-width:760px){body{padding:18px 14px 30px}.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:8px}\
        .tiles>div:last-child:nth-child(odd){grid-column:1/-1}.times{justify-content:flex-start}\
        .identity{grid-template-columns:minmax(0,1fr);gap:10px}.scheme{flex-basis:auto}\
        .counts{display:flex;gap:4px 20px;text-align:left}.counts>div{display:flex;gap:6px;align-items:baseline}\
        .counts dd{font-size:14px;order:-1}thead{display:none}\
        tbody tr{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:10px 14px;padding:14px 18px}\
        tbody th:first-child,.answers{grid-column:1/-1;width:auto;min-width:0}th,td,th:first-child,td:last-child{padding:0}\
        .n{text-align:left}.acts{text-align:left}.acts button{margin:0 8px 0 0}td[data-name=State]{grid-column:1/-1}.n::before{content:attr(data-name);display:block;font-size:12.5px;color:var(--soft)}}

        """
}
