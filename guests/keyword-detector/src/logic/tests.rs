//! Whole prompts, from text to detection.

use super::{Detection, Invocation, Keyword, Settings, Start, cancelled, detect, started, work::steps_of};

/// What a prompt starts, by name: modes first, then blocks; `gate:` before those that the gate turned into ralplan.
fn fires(prompt: &str) -> String {
    summary(&detect(prompt, &Settings::default(), || false))
}

fn summary(detection: &Detection) -> String {
    match detection {
        Detection::Nothing => String::new(),
        Detection::Cancel => "cancel".to_owned(),
        Detection::Start(start) => {
            let names = |list: &[Keyword]| list.iter().map(|keyword| keyword.name().to_owned()).collect::<Vec<_>>();
            let gate = names(&start.redirected).into_iter().map(|name| format!("gate:{name}"));
            [names(&start.modes), names(&start.blocks), gate.collect()].concat().join(" ")
        }
    }
}

/// Requests: prompt, and what it starts.
const REQUESTS: &[(&str, &str)] = &[
    // English.
    ("ralph fix the date bug in src/parser.rs", "ralph"),
    ("ralph refactor src/importer.ts until the tests are green", "ralph"),
    ("ralph: clean up the importer in src/importer.go", "ralph"),
    ("Ralph, clean up src/importer.go and then run the tests", "ralph"),
    ("please ralph src/queue.rs until every test passes", "ralph"),
    ("use ralph to port lib/date.py to the new API", "ralph"),
    ("RALPH FIX src/parser.rs NOW", "ralph"),
    ("please implement the parser described in docs/spec.md using ralph", "ralph"),
    ("implement docs/prd.md — ralph mode", "ralph"),
    ("implement docs/prd.md. ralph", "ralph"),
    ("after that run ralph on src/a.rs", "ralph"),
    ("if tests fail run ralph on src/a.rs", "ralph"),
    ("instead of autopilot use ralph on src/a.rs", "ralph"),
    ("ask ralph to fix src/a.rs", "ralph"),
    ("can you run ralph on src/a.rs?", "ralph"),
    ("could you please start the ralph loop for src/a.rs?", "ralph"),
    ("I'd like ralph to fix src/importer.rs", "ralph"),
    ("i want you to ralph this ticket #88", "ralph"),
    ("let ralph handle src/a.rs", "ralph"),
    ("fix src/a.rs with ralph", "ralph"),
    ("fix this bug in src/a.rs with ralph please", "ralph"),
    ("don't touch the tests, ralph src/a.rs until it compiles", "ralph"),
    ("don't forget to use ralph on src/a.rs", "ralph"),
    ("do not stop: ralph src/a.rs until the tests pass", "ralph"),
    ("why don't you run ralph on src/a.rs?", "ralph"),
    ("explain the failure in src/a.rs, then use ralph to fix it", "ralph"),
    ("what is wrong in src/a.rs? ralph it until the tests pass", "ralph"),
    ("run ralph, not autopilot, on src/a.rs", "ralph"),
    ("ralph fix src/a.rs, ok?", "ralph"),
    ("\"ralph\" fix the importer in src/a.rs", "ralph"),
    ("- ralph fix src/a.rs", "ralph"),
    ("**ralph** fix src/a.rs", "ralph"),
    ("then use /ralph to fix src/a.rs", "ralph"),
    ("please run /oh-my-claudecode:ralph on src/a.rs", "ralph"),
    ("autopilot: build a chess engine in src/engine.ts", "autopilot"),
    ("build me a dashboard that reads src/data/sales.json", "autopilot"),
    ("please make me a cli in src/cli.rs", "autopilot"),
    ("I want a plugin that reads src/data.json", "autopilot"),
    ("go full auto on src/app.ts", "autopilot"),
    ("build the shop in src/shop.ts end to end", "autopilot"),
    ("switch over to autopilot for src/app.ts", "autopilot"),
    ("do src/app.ts in autopilot mode", "autopilot"),
    ("ultrawork on every handler in src/http/routes.ts", "ultrawork"),
    ("ulw add retries to fetchInvoices", "ultrawork"),
    ("uw add retries to fetchInvoices", "ultrawork"),
    ("start \"ultrawork\" for src/a.rs", "ultrawork"),
    ("use ultrawork on src/api.ts and explain the outcome", "ultrawork"),
    ("fix src/a.rs, ulw", "ultrawork"),
    ("ultraqa src/cart.ts until pytest is green", "ultraqa"),
    ("ralplan a new billing flow for the shop", "ralplan"),
    ("can you ralplan the billing flow", "ralplan"),
    ("draft a ralplan for the billing flow", "ralplan"),
    ("ralplan: how should we shard the database?", "ralplan"),
    ("ralplan how to migrate to postgres", "ralplan"),
    ("use autopilot not ralph for src/a.rs", "autopilot"),
    ("do a security review and a code review of src/a.rs", "code-review security-review"),
    ("ralph fix src/a.ts and ulw", "ralph ultrawork"),
    ("ralph fix src/a.ts, tdd, ultrathink", "ralph ultrathink tdd"),
    ("run ralph on src/a.ts and run autopilot on src/b.ts", "ralph autopilot"),
    ("use ralph and ultrawork on src/a.ts", "ralph ultrawork"),
    ("ultrathink this", "ultrathink"),
    ("refactor the parser ultrathink", "ultrathink"),
    ("think hard about the cache", "ultrathink"),
    ("deepsearch the importer", "deepsearch"),
    ("search the codebase for date parsing", "deepsearch"),
    ("find code that parses dates", "deepsearch"),
    ("deep analyze the importer", "analyze"),
    ("tdd the importer", "tdd"),
    ("red green cycle for the importer", "tdd"),
    ("code review my branch", "code-review"),
    ("do a thorough code review of my branch", "code-review"),
    ("security review my branch", "security-review"),
    ("run ultragoal to ship src/release.rs", "ultragoal"),
    ("ultragoal ship the importer", "ultragoal"),
    ("please use ultragoal for the release", "ultragoal"),
    ("deep interview about the billing rules", "deep-interview"),
    ("do a deep interview before you build src/shop.ts", "deep-interview"),
    ("deep-interview me about the shop", "deep-interview"),
    ("let's start a deep interview", "deep-interview"),
    ("ouroboros run", "deep-interview"),
    ("ccg new profile page", "ccg"),
    ("ask ccg to review src/a.rs", "ccg"),
    ("use claude-codex-gemini for the schema", "ccg"),
    ("deslop the importer", "ai-slop-cleaner"),
    ("please de-slop src/a.rs", "ai-slop-cleaner"),
    ("run the ai slop cleaner on src/a.rs", "ai-slop-cleaner"),
    ("remove the ai slop from src/a.rs", "ai-slop-cleaner"),
    ("prune the dead code in the importer", "ai-slop-cleaner"),
    ("please clean up the duplicated code in src/a.rs", "ai-slop-cleaner"),
    ("can you refactor the unnecessary abstractions in src/a.rs?", "ai-slop-cleaner"),
    ("simplify the wrapper layers of src/http.rs", "ai-slop-cleaner"),
    ("wiki add the decision about dates", "wiki"),
    ("please wiki this", "wiki"),
    ("wiki lint", "wiki"),
    ("wiki query how dates are stored", "wiki"),
    ("ralph this in src/a.ts and wiki add it", "ralph wiki"),
    // Korean.
    ("랄프로 src/parser.rs 리팩터링해줘", "ralph"),
    ("ralph로 src/parser.rs 고쳐줘", "ralph"),
    ("ralph 써서 src/parser.rs 고쳐줘", "ralph"),
    ("랄프 돌려줘, src/a.rs 테스트 통과할 때까지", "ralph"),
    ("랄프를 실행해줘 src/a.rs 대상으로", "ralph"),
    ("이 버그를 ralph로 고쳐줘 src/a.rs", "ralph"),
    ("ralph로 src/a.rs 고치고 결과를 설명해줘", "ralph"),
    ("랄프가 src/a.rs 고쳐줘", "ralph"),
    ("랄프한테 src/a.rs 맡겨", "ralph"),
    ("뭐가 문제인지 모르겠는데 랄프로 src/a.rs 고쳐줘", "ralph"),
    ("테스트가 다 통과할 때까지 랄프 돌려줘 src/a.rs", "ralph"),
    ("랄프 말고 오토파일럿으로 src/a.rs 고쳐줘", "autopilot"),
    ("ralph 를 사용해서 src/a.rs 수정해 주세요", "ralph"),
    ("울트라워크 켜고 src/a.rs 고쳐", "ultrawork"),
    ("ralplan으로 계획 세워줘", "ralplan"),
    ("tdd로 개발하자", "tdd"),
    ("ralph fix the parser in src/parser.rs 파서 오류를 고쳐줘 🚀", "ralph"),
    ("ralph fix the parser in src/parser.rs — 파서 수정", "ralph"),
    ("오토파일럿 켜줘, src/server.ts 에 로그인을 추가해", "autopilot"),
    ("울트라워크 시작, src/http/client.ts 재시도 추가", "ultrawork"),
    ("랄플랜 해줘", "ralplan"),
    ("울트라씽크 해줘", "ultrathink"),
    ("딥서치 해줘", "deepsearch"),
    ("딥 분석 해줘", "analyze"),
    ("테스트 퍼스트로 가자", "tdd"),
    ("코드 리뷰 부탁", "code-review"),
    ("보안 리뷰 부탁", "security-review"),
    // Japanese.
    ("ラルフを開始して src/parser.rs を直して", "ralph"),
    ("ラルフ 実行 src/parser.rs", "ralph"),
    ("ralphで src/a.rs を直して、テストは消さないで", "ralph"),
    ("ralphを使って src/a.rs を直してください", "ralph"),
    ("オートパイロットで src/server.ts を進めて", "autopilot"),
    ("ウルトラワークで src/http/client.ts を直して", "ultrawork"),
    ("ラルフに任せて src/a.rs", "ralph"),
    ("ralph使って src/a.rs 直して", "ralph"),
    ("オートパイロットモードで src/a.rs を実装してください", "autopilot"),
    ("コードレビューお願い", "code-review"),
    ("tddで実装して", "tdd"),
    // Chinese.
    ("用 ralph 修复 src/a.rs", "ralph"),
    ("请使用ralph修复 src/a.rs", "ralph"),
    ("启动 autopilot 重构 src/a.rs", "autopilot"),
    ("开启ulw模式 重构 src/a.rs", "ultrawork"),
    ("ralph 修复 src/a.rs", "ralph"),
    ("用 ralplan 规划结算流程", "ralplan"),
    ("不要停，用 ultrawork 修复 src/a.rs", "ultrawork"),
    // Skills in Korean, Japanese and Chinese.
    ("딥인터뷰 해줘", "deep-interview"),
    ("딥 인터뷰로 요구사항 정리해줘", "deep-interview"),
    ("씨씨지로 프로필 화면을 그려줘", "ccg"),
    ("ultragoal로 릴리스까지 가자 src/release.rs", "ultragoal"),
    ("ディープインタビューを始めて", "deep-interview"),
    ("シーシージーで設計して", "ccg"),
    ("用 ultragoal 完成发布", "ultragoal"),
    // Invocations.
    ("/oh-my-claudecode:ralph tidy the importer", "ralph"),
    ("/ralph tidy the importer", "ralph"),
    ("/omc:ralph tidy the importer", "ralph"),
    ("/autopilot chess engine", "autopilot"),
    ("/oh-my-claudecode:ultrawork chess engine", "ultrawork"),
    ("/oh-my-claudecode:ralplan a new billing flow", "ralplan"),
    ("/omc:ultraqa", "ultraqa"),
    ("/ultragoal ship the shop", "ultragoal"),
    ("/omc:deep-interview the shop", "deep-interview"),
    ("/wiki add the decision", "wiki"),
    ("/ccg new page", "ccg"),
    ("/ai-slop-cleaner src/a.rs", "ai-slop-cleaner"),
    ("$ultragoal ship the shop", "ultragoal"),
    ("/ralph as autopilot would, ulw; tdd", "ralph tdd"),
    ("$ralph importer cleanup", "ralph"),
    ("!ralph importer cleanup", "ralph"),
    ("force: ralph importer cleanup", "ralph"),
    ("force: please use ultrawork here", "ultrawork"),
    ("/review with ultrathink", "ultrathink"),
    // Cancel.
    ("cancelomc", "cancel"),
    ("please stopomc right away", "cancel"),
    ("can you cancelomc please?", "cancel"),
    ("ok, cancelomc!", "cancel"),
    ("cancelomc then ralph the rest of src/a.ts, ulw too", "cancel"),
    ("/cancel", "cancel"),
    ("/omc:cancel", "cancel"),
    ("/oh-my-claudecode:cancel --force", "cancel"),
    // The gate.
    ("ralph", "ralplan gate:ralph"),
    ("ralph make the shop nicer", "ralplan gate:ralph"),
    ("autopilot the whole release", "ralplan gate:autopilot"),
    ("ulw tidy everything up", "ralplan gate:ultrawork"),
    ("ultraqa until it works", "ralplan gate:ultraqa"),
    ("ralph로 리팩터링 해줘", "ralplan gate:ralph"),
    ("랄프", "ralplan gate:ralph"),
    ("make me a dashboard", "ralplan gate:autopilot"),
    ("ralph make the way our shop handles orders from new customers feel much nicer", "ralplan gate:ralph"),
    ("ralph fix the way our shop handles orders from new customers so that nobody waits long", "ralph"),
    ("ralph the shop, tdd", "ralplan tdd gate:ralph"),
    ("ralph it and ralplan it", "ralph ralplan"),
    ("ulw fix the typo in src/a.ts", "ultrawork"),
    ("ralph fix `src/auth.ts`", "ralph"),
    ("ralph fix this\n```\nlet total = sum(items) / count\n```", "ralph"),
];

/// Mentions: nothing starts.
const MENTIONS: &[&str] = &[
    // Questions.
    "what is ralph?",
    "what is ralph",
    "is ralph still running?",
    "explain ralph to me",
    "can you explain how to run ralph in src/a.rs?",
    "how do I use autopilot in src/app.ts",
    "should we use ralph for src/a.rs?",
    "could ralplan help here?",
    "did you run ralph on src/a.rs?",
    "autopilot?",
    "autopilot: what is that?",
    "ralplan: what is that?",
    "Has ralph finished?",
    "does autopilot support src/a.rs?",
    "why is ultrawork so slow today",
    "explain how to install and run ralph on src/a.rs",
    "tell me about the ralph loop in src/a.rs",
    "when should I use ultrawork",
    "ralph 와 ralplan 은 뭐야?",
    "ralph 설명해줘",
    "오토파일럿 사용법 알려줘",
    "랄프를 어떻게 실행해?",
    "랄프 실행 방법 알려줘",
    "ralph로 뭐 할 수 있어?",
    "랄프랑 오토파일럿 차이가 뭐야",
    "랄프 써도 돼?",
    "왜 랄프가 계속 멈춰?",
    "ラルフとは何ですか",
    "ralphの使い方を教えて",
    "什么是 ralph",
    "请解释 ralph 的作用",
    "怎么用 autopilot",
    "请告诉我怎么用 ralph 修复 src/a.rs",
    "어떻게 랄프를 실행해?",
    "ralph 和 autopilot 有什么区别",
    "为什么 ralph 停不下来",
    "オートパイロットって何ですか",
    "コードレビューの方法を教えて",
    // Denials.
    "do not run ralph on src/parser.rs",
    "don't run ultrawork, it's late",
    "don’t use ralph in src/a.rs",
    "never use autopilot here, edit src/app.ts by hand",
    "please do not ever start autopilot in src/app.ts",
    "fix src/a.rs without ralph",
    "fix src/a.rs, no ralph please",
    "I don't want you to use autopilot for src/a.rs",
    "don't use ralph, autopilot or ultrawork on src/a.rs",
    "stop ralph",
    "stop using the ralph loop",
    "turn off autopilot",
    "kill ralph now",
    "exit autopilot mode",
    "there is no need for ralph in src/a.rs",
    "edit src/a.rs instead of running autopilot",
    "ralph should not run on src/a.rs",
    "ralph is not needed for src/a.rs",
    "ultrawork 없이 src/app.ts 고쳐줘",
    "오토파일럿 쓰지 마, src/app.ts 는 내가 고칠게",
    "랄프 돌리지 말고 src/a.rs 만 고쳐줘",
    "ralph 대신 src/a.rs 를 직접 고쳐줘",
    "랄프 꺼줘",
    "랄프 안 쓰고 src/a.rs 고쳐줘",
    "ラルフをやめて src/a.rs だけ直して",
    "オートパイロットではなく手で src/a.rs を直して",
    "コードレビューは不要です",
    "先不要启动 ralph",
    "停止 ralph",
    "ウルトラワークは使わないで src/app.ts を直して",
    "ラルフなしで src/a.rs を直して",
    "ralphを実行しないで",
    "不要用 ralph 修复 src/a.rs",
    "别启动 autopilot，直接改 src/a.rs",
    // Faults and talk.
    "Fix the bug in autopilot mode",
    "there is a bug in ultrawork",
    "there is a problem with autopilot in src/a.rs",
    "ralph keeps looping on my repo",
    "the ralph loop is stuck again in src/a.rs",
    "I like autopilot",
    "thanks ralph",
    "ralph, you are awesome",
    "add a test for the ralph keyword in src/keywords.rs",
    "rename ralph to roger in src/a.rs",
    "implement autopilot in src/drone.rs",
    "build the autopilot feature of the drone in src/drone.rs",
    "document autopilot in README.md",
    "랄프의 상태 파일을 열어줘",
    "랄프 문서 업데이트해줘 docs/ralph.md",
    "ラルフのバグを直して src/a.rs",
    "ウルトラワークが遅い",
    "ralph 有 bug",
    "I use ralph every day for src/a.rs",
    "we ran autopilot on src/a.rs yesterday",
    "my colleague Ralph reviewed src/a.rs",
    "Ralph said that src/a.rs is fine",
    "update docs about ultrawork",
    "the docs compare autopilot with ultrawork",
    "ralph vs autopilot for src/a.rs",
    "ralph: loops until done\nautopilot: builds from an idea in src/a.rs",
    "our end to end suite is red",
    "end to end tests in src/a.rs are red",
    "we study at UW-Milwaukee",
    "UW students",
    "autonomous cars survey",
    "I want a holiday",
    "make me a fancy dashboard",
    "team of five people please",
    "don't stop anything that is running",
    "must complete until done in src/a.rs",
    "Ralph Lauren jackets",
    "ralph-loop이 자꾸 재실행되는 문제가 있어. 점검해줘",
    "랄프가 자꾸 멈추는데 src/a.rs 좀 봐줘",
    "랄프는 어제 src/a.rs 를 고쳤다",
    "오토파일럿 문서 정리해줘",
    "오토파일럿 버그 고쳐줘 src/a.rs",
    "랄프 ㅋㅋㅋ",
    "ラルフがまたエラーで止まった",
    "ラルフローレンのジャケットと 랄프로렌 셔츠",
    "ralph 的 bug 在 src/a.rs",
    "코드리뷰어 구해요",
    "code review my branch, then approve or request changes",
    "fix a typo on the wiki page",
    "wiki",
    "update the wiki",
    "our wiki adds nothing here",
    "what does wiki lint do?",
    "how do I use wiki query",
    "what is a deep interview?",
    "the deep interview went well",
    "we had a deep interview with the client yesterday",
    "no deep interview please, just fix src/a.rs",
    "ouroboros is a snake that eats its tail",
    "the CCG decided to fund the clinic",
    "is there dead code in src/a.rs?",
    "there is a lot of dead code in src/a.rs",
    "why is there so much duplication in src/a.rs",
    "find out where the tech debt comes from",
    "this looks like ai slop",
    "refactor the importer",
    "do not clean up the dead code",
    "what is ultragoal?",
    "ultragoal is stuck",
    "don't use ultragoal here",
    "딥인터뷰가 뭐야?",
    "씨씨지 사용법 알려줘",
    "ultragoal 쓰지 마",
    "ディープインタビューとは何ですか",
    "ultragoal 是什么",
    // Shown.
    "he wrote \"use autopilot\" in his mail about src/app.ts",
    "he said 'run ralph on src/a.rs' yesterday",
    "그가 「랄프 돌려줘 src/a.rs」라고 썼다",
    "rename the label \"ultrawork\" in src/menu.ts",
    "rename the label `ultrawork` in src/menu.ts",
    "```\nralph fix src/parser.rs\n```\nwhich line prints twice",
    "~~~\nautopilot build src/app.ts\n~~~\nwhich line prints twice",
    "> ralph fix src/parser.rs\nwho wrote this line",
    "| mode | autopilot |\n| --- | --- |\n| file | src/app.ts |",
    "summarise https://x.test/ralph/autopilot for me",
    "<system-reminder>ultrawork on src/app.ts</system-reminder>hello",
    "<!-- ralph: fix src/app.ts --> tidy the readme",
    "open lib/autopilot/start.rs and count its lines",
    "wire ralph-step-0a.sh into its callers",
    "ultrawork-banner is the css class to rename in src/menu.css",
    "# Ralph\n\nsome notes on src/a.rs",
    "<assistant>\nautopilot build src/app.ts\n</assistant>\nthanks",
    "$ autopilot start src/app.ts\nthat printed nothing",
    "diff --git a/src/app.ts b/src/app.ts\n+++ b/src/app.ts\n+ralph fix this",
    "diff --git a/f b/f\n@@ -1 +1 @@\n autopilot build src/app.ts",
    "cat autopilot.rs",
    // Other commands.
    "/ask codex ralph fix src/parser.rs",
    "/omc:ask gemini use autopilot on src/a.rs",
    "/team 3 use ralph on src/a.rs",
    "/compact keep what ralph did in src/a.rs",
    // No command to cancel.
    "can you cancel this order please",
    "what will cancelomc do to my files?",
    "explain what happens after stopomc",
    "cancelomc 뭐야",
    "do not cancelomc",
    "`cancelomc`",
    // Nothing at all.
    "",
    " \n\t ",
    "fix the parser in src/parser.rs",
];

/// More requests, as people of four languages write them.
const MORE_REQUESTS: &[(&str, &str)] = &[
    // English.
    ("hey, could you ralph through the failing specs in spec/models/user_spec.rb", "ralph"),
    ("new plan: ralph on #412 until CI is happy", "ralph"),
    ("ok do it, and use ralph so that src/db.rs really compiles", "ralph"),
    ("go ahead with ralph on packages/core/index.ts", "ralph"),
    ("start a ralph loop and get src/lexer.rs to pass its tests", "ralph"),
    ("we should be done with the docs, now ralph the rest of src/lib.rs", "ralph"),
    ("i need you to run ralph against src/auth/login.ts", "ralph"),
    ("no more questions, ralph src/a.rs", "ralph"),
    ("fine. ulw the migration in db/migrate/001.sql", "ultrawork"),
    ("kick off ultrawork for src/services/*.ts", "ultrawork"),
    ("please enable ultrawork mode and update src/i18n/de.json", "ultrawork"),
    ("parallelize src/build.rs with ultrawork", "ultrawork"),
    ("autopilot, add a login page in src/pages/login.tsx", "autopilot"),
    ("let's go with autopilot for src/cli.rs", "autopilot"),
    ("put it on autopilot: src/report.py should print totals", "autopilot"),
    ("create me a bot that answers issues, see src/bot.ts", "autopilot"),
    ("handle it all: src/a.rs, its tests and its docs", "autopilot"),
    ("run ultraqa until cargo test passes", "ultraqa"),
    ("ultraqa the build in Cargo.toml", "ultraqa"),
    ("use ralplan before you touch the schema", "ralplan"),
    ("let's ralplan the move to postgres", "ralplan"),
    ("i want you to use ralplan for the new pricing", "ralplan"),
    ("run a deep interview with me about the onboarding", "deep-interview"),
    ("please start the deep-interview", "deep-interview"),
    ("use ccg to decide between the two schemas", "ccg"),
    ("please antislop src/a.rs", "ai-slop-cleaner"),
    ("clean up the code duplication between src/a.rs and src/b.rs", "ai-slop-cleaner"),
    ("wiki ingest docs/adr/0007.md", "wiki"),
    ("ultragoal: 90 percent coverage in src/core", "ultragoal"),
    ("start ultragoal for the 2.0 release", "ultragoal"),
    ("think deeply about the locking in src/lock.rs", "ultrathink"),
    ("please do a security review of src/auth.rs", "security-review"),
    ("search the codebase for every caller of parse_date", "deepsearch"),
    ("deep-analyze why the cache misses", "analyze"),
    ("use tdd for src/money.rs", "tdd"),
    // Korean.
    ("랄프 모드로 src/a.rs 끝까지 고쳐줘", "ralph"),
    ("이제 ralph 시작해서 src/db.rs 테스트 통과시켜줘", "ralph"),
    ("src/parser.rs 는 랄프로 돌려", "ralph"),
    ("ralph 켜줘 그리고 src/a.rs 컴파일 에러 잡아줘", "ralph"),
    ("랄프 써줘, #42 이슈 해결할 때까지", "ralph"),
    ("랄프로 src/a.rs 마이그레이션 진행해줘", "ralph"),
    ("오토파일럿으로 src/app.ts 로그인 페이지 만들어줘", "autopilot"),
    ("autopilot 모드로 src/cli.rs 구현해줘", "autopilot"),
    ("울트라워크로 src/http.rs 재시도 로직 추가해줘", "ultrawork"),
    ("ulw 로 src/i18n/ko.json 번역해줘", "ultrawork"),
    ("ultraqa 돌려줘 pytest 통과할 때까지", "ultraqa"),
    ("랄플랜으로 결제 구조 설계해줘", "ralplan"),
    ("ralplan 먼저 해줘", "ralplan"),
    ("딥인터뷰 시작해줘", "deep-interview"),
    ("ccg 로 의견 모아줘", "ccg"),
    ("울트라골 말고 ultragoal 시작해줘", "ultragoal"),
    ("이 브랜치 코드리뷰 해줘", "code-review"),
    ("보안리뷰 부탁드려요", "security-review"),
    ("딥서치로 호출하는 곳 다 찾아줘", "deepsearch"),
    ("tdd로 src/money.rs 구현해줘", "tdd"),
    // Japanese.
    ("ラルフで src/a.rs を最後まで直してください", "ralph"),
    ("ralphを起動して src/db.rs のテストを通して", "ralph"),
    ("ralphモードで src/a.rs をリファクタリングして", "ralph"),
    ("ラルフを使って #42 を解決して", "ralph"),
    ("オートパイロットを開始して src/app.ts を作って", "autopilot"),
    ("autopilotで src/cli.rs を実装してください", "autopilot"),
    ("ウルトラワークを使って src/http.rs を直して", "ultrawork"),
    ("ulwで src/i18n/ja.json を翻訳して", "ultrawork"),
    ("ultraqaを実行して cargo test を通して", "ultraqa"),
    ("ラルプランで決済を設計して", "ralplan"),
    ("ralplanで計画を立ててください", "ralplan"),
    ("セキュリティレビューをお願いします", "security-review"),
    ("ディープサーチして", "deepsearch"),
    ("ウルトラシンクで考えて", "ultrathink"),
    // Chinese.
    ("用 ralph 把 src/a.rs 的测试全部修好", "ralph"),
    ("请启动 ralph 修复 #42", "ralph"),
    ("使用 ralph 模式重构 src/db.rs", "ralph"),
    ("開啟 ralph 修正 src/a.rs", "ralph"),
    ("用 autopilot 实现 src/app.ts 的登录页", "autopilot"),
    ("请用 ultrawork 翻译 src/i18n/zh.json", "ultrawork"),
    ("运行 ultraqa 直到 cargo test 通过", "ultraqa"),
    ("先用 ralplan 设计数据库", "ralplan"),
    ("用 ccg 讨论一下方案", "ccg"),
    ("使用 tdd 实现 src/money.rs", "tdd"),
];

/// More mentions.
const MORE_MENTIONS: &[&str] = &[
    // English.
    "who wrote the ralph guard in src/guard.rs?",
    "where does ralph keep its state?",
    "which files does autopilot touch?",
    "is ultrawork faster than ralph for src/a.rs?",
    "can ralph work on src/a.rs and src/b.rs at once?",
    "would autopilot have caught this?",
    "ralph was a mistake in src/a.rs, revert its commits",
    "the ralph skill is documented in docs/ralph.md",
    "ralph's iteration counter is wrong in src/state.rs",
    "please explain the difference between ralph and ultrawork",
    "I heard that autopilot is great",
    "autopilot crashed at src/app.ts:12",
    "ultrawork finished, what is left?",
    "do not start ultraqa, the build is broken",
    "without using autopilot, fix src/a.rs",
    "rather than ralph, just edit src/a.rs",
    "avoid ultrawork for src/a.rs",
    "quit ralph",
    "disable autopilot",
    "show me how ralplan works",
    "write a test for the word autopilot in src/keywords.rs",
    "grep for ultrawork in src/",
    "the title should read \"Autopilot for teams\" in src/title.tsx",
    "we talked about tdd at lunch",
    "the code review took three days",
    "our security review is due in May",
    // Korean.
    "랄프가 뭔지 설명해줘",
    "ralph 상태 파일이 어디 있어?",
    "랄프 쓰지 말고 직접 src/a.rs 고쳐줘",
    "오토파일럿 중지해줘",
    "울트라워크는 왜 이렇게 느려?",
    "랄프 관련 문서를 읽어줘",
    "ralph 이랑 ultrawork 중에 뭐가 나아?",
    "autopilot 이 어제 멈췄어",
    "랄프 버그 리포트를 써줘",
    "ralplan 없이 바로 src/a.rs 고쳐줘",
    "코드 리뷰가 뭐야?",
    // Japanese.
    "ラルフって何ですか",
    "ralphの状態ファイルはどこですか",
    "ラルフを使わずに src/a.rs を直して",
    "オートパイロットを止めて",
    "ウルトラワークの説明をしてください",
    "ralphとautopilotの違いを教えて",
    "ラルフが昨日止まりました",
    "ralplanは要りません",
    // Chinese.
    "ralph 是什么？",
    "ralph 的状态文件在哪里？",
    "不要使用 autopilot",
    "关闭 autopilot",
    "解释一下 ultrawork 的作用",
    "ralph 和 ultrawork 哪个更好？",
    "ralph 昨天卡住了",
    "别用 ralph，直接改 src/a.rs",
];

#[test]
fn requests_start_what_they_ask_for() {
    let wrong: Vec<_> = REQUESTS
        .iter()
        .chain(MORE_REQUESTS)
        .filter_map(|(prompt, want)| {
            let got = fires(prompt);
            (got != *want).then(|| format!("{prompt:?}: want {want:?}, got {got:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn mentions_start_nothing() {
    let wrong: Vec<_> = MENTIONS
        .iter()
        .chain(MORE_MENTIONS)
        .filter_map(|prompt| {
            let got = fires(prompt);
            (!got.is_empty()).then(|| format!("{prompt:?}: got {got:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a prompt starts, taken apart. Fails if it starts nothing.
fn start_of(prompt: &str) -> Start {
    match detect(prompt, &Settings::default(), || false) {
        Detection::Start(start) => start,
        other => panic!("{prompt:?}: {other:?}"),
    }
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// What the model is told.
fn told(prompt: &str) -> String {
    told_by(prompt, Invocation::Slash)
}

/// What the model of an agent with these invocations is told.
fn told_by(prompt: &str, invocation: Invocation) -> String {
    match detect(prompt, &Settings { invocation, ..Settings::default() }, || false) {
        Detection::Nothing => String::new(),
        Detection::Cancel => cancelled(true, invocation),
        Detection::Start(start) => started(&start, invocation),
    }
}

#[test]
fn what_our_own_hooks_printed_starts_nothing() {
    for prompt in [
        "[RALPH LOOP - ITERATION 3]",
        "[RALPH LOOP - ITERATION 3/100] Work is NOT done. Run ralph on src/parser.rs",
        "[RALPH LOOP - ITERATION 9/100] go on\nTask: ralph fix src/parser.rs",
        "[RALPH LOOP - EXTENDED] please ralph on in src/parser.rs",
        "[RALPH LOOP - HARD LIMIT] start ralph again for src/parser.rs",
        "[AUTOPILOT - Phase: qa] run autopilot on src/app.ts",
        "[ULTRAWORK #4/50] use ulw on src/app.ts",
        "[ULTRAQA - Cycle 2/5] run ultrawork on src/app.ts",
        "[TEAM - Phase: team-exec] use ultrawork on src/app.ts",
        "[OMC TEAMS - Phase: fixing] use ultrawork on src/app.ts",
        "[RALPLAN - CONSENSUS PLANNING | REINFORCEMENT 2/30] run ralplan for src/app.ts",
        "[SKILL ACTIVE: plan] start autopilot on src/app.ts",
        "[TEAM PIPELINE - PHASE: TEAM-EXEC | REINFORCEMENT 1/20] run ulw on src/app.ts",
        "[MAGIC KEYWORD: RALPH] start ralph on src/app.ts",
        "[TOOL ERROR - RETRY REQUIRED] run ralph on src/app.ts",
        "Stop hook feedback: run autopilot on src/app.ts",
        "PreToolUse:Bash hook additional context: use ultrawork on src/app.ts",
        "<ralph-continuation>\n[RALPH - ITERATION 2/10] ralph fix src/a.rs\n</ralph-continuation>",
    ] {
        assert_eq!(fires(prompt), "", "{prompt:?}");
    }
}

#[test]
fn everything_this_guest_says_can_be_pasted_back_before_a_request() {
    let said = [
        "ralph fix src/a.rs",
        "ralph it\n\nand ulw, tdd, ultrathink, code review",
        "cancelomc",
        "autopilot the release",
    ];
    for first in said {
        let said = told(first);
        assert_eq!(fires(&said), "", "{said}");
        assert_eq!(fires(&format!("{said}\n\nrun ultraqa on src/b.rs")), "ultraqa", "{said}");
    }
}

#[test]
fn a_request_behind_an_echo_starts_once_and_is_told_without_it() {
    let prompt = "[RALPH LOOP - ITERATION 3/100] Work is NOT done.\nTask: port the lexer\n\nralph fix the date bug in src/parser.rs";
    let start = start_of(prompt);
    assert_eq!(start.modes, [Keyword::Ralph]);
    assert_eq!(start.prompt, "ralph fix the date bug in src/parser.rs");
    let said = told(prompt);
    assert!(!said.contains("ITERATION") && !said.contains("port the lexer"));
    assert_eq!(said.matches("[MAGIC KEYWORD: RALPH]").count(), 1);
    // The line right after a banner is the user's, unless it is one that banners have.
    assert_eq!(fires("[RALPH LOOP - ITERATION 9/100] go on\nrun ralph on src/a.rs"), "ralph");
    assert_eq!(fires("Task: run ralph on src/a.rs"), "ralph");
    assert_eq!(
        start_of("it said: run /oh-my-claudecode:cancel.\nrun ralph on src/a.rs").prompt,
        "(prompt omitted: pasted system echo)"
    );
}

#[test]
fn an_unfinished_paste_hides_no_request_after_it() {
    for prompt in [
        "<user>\nautopilot build src/a.rs\n\nralph fix src/b.rs",
        "[MAGIC KEYWORD: AUTOPILOT]\nautopilot src/a.rs\n\nralph fix src/b.rs",
        "<!-- autopilot src/a.rs\nralph fix src/b.rs",
        "the ` autopilot\nralph fix src/b.rs",
        "<note> about it\nralph fix src/b.rs",
        "diff --git a/f b/f\n+autopilot src/a.rs\n\nralph fix src/b.rs",
    ] {
        assert_eq!(fires(prompt), "ralph", "{prompt:?}");
    }
}

#[test]
fn commands_are_sure_and_prefixes_waive_the_gate() {
    for (prompt, by_command) in [
        ("/ralph tidy the importer", true),
        ("/omc:ralph", true),
        ("$ralph tidy", false),
        ("!ralph tidy", false),
        ("force: ralph tidy", false),
        ("omc:ralph tidy", false),
        ("ralph tidy src/a.rs", false),
    ] {
        let start = start_of(prompt);
        assert_eq!((start.modes.as_slice(), start.by_command), ([Keyword::Ralph].as_slice(), by_command), "{prompt}");
    }
}

#[test]
fn keywords_can_be_turned_off_except_cancel() {
    let settings = Settings {
        disabled: vec!["Ralph".into(), " tdd ".into(), "cancel".into(), "nonsense".into()],
        ..Settings::default()
    };
    for (prompt, want) in [
        ("ralph fix src/a.rs", ""),
        ("/ralph fix src/a.rs", ""),
        ("!ralph fix src/a.rs", ""),
        ("tdd the importer", ""),
        ("ralph fix src/a.rs and ulw", "ultrawork"),
        ("cancelomc", "cancel"),
    ] {
        assert_eq!(summary(&detect(prompt, &settings, || false)), want, "{prompt}");
    }
}

#[test]
fn the_gate_can_be_turned_off_and_opens_for_an_approved_plan() {
    let open = Settings { gate: false, ..Settings::default() };
    assert_eq!(summary(&detect("ralph make it nicer", &open, || false)), "ralph");
    let no_ralplan = Settings { disabled: vec!["ralplan".into()], ..Settings::default() };
    assert_eq!(summary(&detect("ralph make it nicer", &no_ralplan, || false)), "ralph");
    assert_eq!(summary(&detect("ralph please", &Settings::default(), || true)), "ralph");
    assert_eq!(summary(&detect("ralph please", &Settings::default(), || false)), "ralplan gate:ralph");
    assert_eq!(summary(&detect("ralph make it nicer", &Settings::default(), || true)), "ralplan gate:ralph");
    let strict = Settings { gate_words: 40, ..Settings::default() };
    assert_eq!(summary(&detect(&format!("ralph {}", "word ".repeat(30)), &strict, || false)), "ralplan gate:ralph");
    let asked = std::cell::Cell::new(false);
    detect("ralph fix src/a.rs", &Settings::default(), || asked.replace(true));
    assert!(!asked.get(), "plans are looked for only when the gate would close");
}

#[test]
fn the_model_is_told_the_marker_the_way_and_the_end() {
    for (prompt, pieces) in [
        (
            "ralph fix src/a.rs",
            &["[MAGIC KEYWORD: RALPH]", "`omc:ralph`", "`/omc:cancel`", "User request:\nralph fix src/a.rs"][..],
        ),
        (
            "ralph fix src/a.rs and ulw",
            &["[MAGIC KEYWORDS DETECTED: RALPH, ULTRAWORK]", "`omc:ralph`", "`omc:ultrawork`"],
        ),
        (
            "ralph make it nicer",
            &["[MAGIC KEYWORD: RALPLAN]", "[RALPLAN GATE]", "request for ralph", "starts ralph at once", "`force:`"],
        ),
        (
            "ralph fix src/a.rs, tdd, ultrathink",
            &["<think-mode>", "[TDD MODE ACTIVATED]", "</tdd-mode>\n---\n[MAGIC KEYWORD: RALPH]"],
        ),
        ("tdd the importer", &["<tdd-mode>"]),
        ("cancelomc", &["[MAGIC KEYWORD: CANCEL]", "`omc:cancel`"]),
    ] {
        let said = told(prompt);
        for piece in pieces {
            assert!(said.contains(piece), "{piece:?} in {said}");
        }
        assert!(!said.contains("\n\n") && units(&said) < 5_000, "{said}");
    }
    assert!(!told("tdd the importer").contains("User request"));
    let cancelled = told("cancelomc then ralph the rest of src/a.ts, ulw too");
    assert!(!cancelled.contains("RALPH") && !cancelled.contains("ULTRAWORK"));
}

#[test]
fn in_codex_every_text_names_commands_and_skills_as_codex_does() {
    let mut ends = 0;
    for keyword in Keyword::all() {
        let said = told_by(&format!("$omc:{}", keyword.name()), Invocation::Dollar);
        assert!(!said.contains("/omc:") && !said.contains("Skill tool"), "{keyword:?}: {said}");
        let (_, advice) = said.split_once("If you have the skill `").unwrap_or_default();
        assert!(advice.is_empty() || advice.starts_with(&format!("{}`, read it ", keyword.name())), "{said}");
        ends += usize::from(said.contains(" run `$cancel`; that is also how the user ends the mode"));
    }
    assert_eq!(ends, Keyword::all().filter(|keyword| keyword.sort().is_mode()).count());
    let elsewhere = Start { autopilot_elsewhere: true, ..Start::default() };
    assert!(started(&elsewhere, Invocation::Dollar).contains("with `$cancel`;"));
    assert!(told_by("cancelomc", Invocation::Dollar).contains(" If you have the skill `cancel`, read it to clear up "));
}

#[test]
fn a_plan_that_a_command_asks_for_has_the_originals_marker() {
    for (prompt, marked) in
        [("/ralplan a new billing flow", true), ("ralplan a new billing flow", false), ("/ralph x", false)]
    {
        assert_eq!(told(prompt).contains("\n[RALPLAN INIT] "), marked, "{prompt}");
    }
}

#[test]
fn another_sessions_autopilot_is_told_of() {
    let mut start = start_of("autopilot src/a.rs");
    start.modes.clear();
    start.autopilot_elsewhere = true;
    let said = started(&start, Invocation::Slash);
    assert!(said.starts_with("[AUTOPILOT NOT STARTED]"), "{said}");
}

#[test]
fn long_requests_are_cut_and_hold_no_control_characters() {
    let said = told(&"ulw src/a.ts ".repeat(200));
    let (_, request) = said.split_once("User request:\n").expect("a request");
    assert!(units(request) <= 1200 && units(request) > 1150 && request.ends_with("..."), "{}", units(request));
    let said = told(&format!("/ralph {}", "🚀".repeat(100_000)));
    assert!(units(&said) < 5_000);
    let said = told("/ralph a\u{1b}[31m\u{7} b\n\n\n\tc");
    assert!(said.ends_with("User request:\n/ralph a[31m b\n\tc"), "{said:?}");
}

#[test]
fn a_request_at_either_end_of_a_huge_prompt_is_seen() {
    let paste = "all work and no play\n".repeat(100_000);
    assert_eq!(fires(&format!("ralph fix src/a.rs\n{paste}")), "ralph");
    assert_eq!(fires(&format!("{paste}\nralph fix src/a.rs")), "ralph");
}

/// The work on a prompt of some length, and on one eight times as long.
fn growth(piece: &str) -> (u64, u64) {
    let work = |bytes: usize| {
        let prompt = piece.repeat(bytes / piece.len());
        steps_of(|| {
            detect(&prompt, &Settings::default(), || false);
        })
    };
    (work(12 * 1024), work(8 * 12 * 1024))
}

#[test]
fn bait_costs_no_more_than_its_length() {
    for piece in [
        "<a ",
        "<a>",
        "</a>",
        "<a><b></a></b>",
        "<a \"'`[ ",
        "\"",
        "'",
        "'a ",
        "`",
        "` ``",
        "``` ",
        "```\n",
        "~~~\n",
        "<!-- ",
        "-->",
        "ralph ",
        "ralph\n",
        "ralph, ",
        "what is ralph ",
        "\"ralph\" ",
        "do not run ralph and ",
        "build me a ",
        "i want ",
        "search the ",
        "<user>\n",
        "<user>\n\n",
        "<system>\nx</system>\n",
        "[MAGIC KEYWORD: X]\n",
        "[MAGIC KEYWORD: X]\nUser request:\nx\n\n",
        "[RALPH LOOP\nTask: x\n",
        "User request:\n",
        "diff --git a/\n+x\n",
        "index a..b\n",
        "| a | b |\n",
        "> \n",
        "https://",
        "a/",
        "a.b/",
        "(a/b.",
        "@a/",
        "/ralph ",
        "!",
        "\n",
        " ",
        "\u{3000}",
        "랄프",
        "랄프로 ",
        "ラルフ、",
        "用ralph ",
        "코드 리뷰 ",
        "a_b",
        "🚀",
        "\u{0}",
        "ralph: \nulw: \n",
        "UserPromptSubmit ",
        "omc:",
        "force:",
        "approve blocked ",
    ] {
        let (short, long) = growth(piece);
        assert!(long <= 10 * short, "{piece:?}: {short} steps, then {long}");
        assert!(long <= 100 * 8 * 12 * 1024, "{piece:?}: {long} steps for 96 KiB");
    }
}

#[test]
fn beyond_the_bound_a_prompt_costs_nothing_more() {
    let work = |bytes: usize| {
        let prompt = "<a \"'`[ ralph ".repeat(bytes / 15);
        steps_of(|| {
            detect(&prompt, &Settings::default(), || false);
        })
    };
    assert!(work(8 * 1024 * 1024) <= work(512 * 1024) + 1024);
}
