//! The word lists of the context filter, one for each role that a word can play around a keyword.
//!
//! English lists hold whole words in lower case. The lists of Korean, Japanese, Chinese and Thai hold pieces of text, as those
//! languages put no spaces where a list would need them.

/// Words that carry no meaning of their own at the start of a request.
pub(super) const FILLERS: &[&str] = &[
    "please", "pls", "plz", "kindly", "ok", "okay", "hey", "hi", "hello", "so", "well", "alright", "right", "yes",
    "yeah", "yep", "sure", "now", "just", "also", "and", "then", "first", "next", "finally", "again", "instead",
    "let's", "lets", "quickly", "quick", "immediately", "actually", "claude", "but", "once", "more", "simply", "plus",
    "or", "today", "really", "another", "round", "자", "이제", "그럼", "그냥", "그리고", "그다음", "다음은", "좋아",
    "오케이", "네", "응", "제발", "지금", "먼저", "다시", "请", "請", "现在", "然后", "好", "じゃあ", "では", "さあ",
    "まず", "次は", "今度は", "それでは", "今",
];

/// Words with which people ask politely, at the start of a request.
pub(super) const POLITE: &[&str] = &["please", "pls", "plz", "kindly", "let's", "lets", "제발", "请", "請"];

/// Rows of words that open a request. Longer ones stand before their beginnings.
pub(super) const OPENERS: &[&[&str]] = &[
    &["i", "think", "you", "should"],
    &["i", "think", "we", "should"],
    &["i", "would", "like", "you", "to"],
    &["i'd", "like", "you", "to"],
    &["i", "want", "you", "to"],
    &["i", "need", "you", "to"],
    &["i", "would", "like", "to"],
    &["i'd", "like", "to"],
    &["we'd", "like", "to"],
    &["i'd", "love", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["we", "want", "to"],
    &["we", "need", "to"],
    &["you", "need", "to"],
    &["you", "have", "to"],
    &["i", "would", "like"],
    &["i'd", "like"],
    &["we'd", "like"],
    &["i", "want"],
    &["i", "need"],
    &["we", "want"],
    &["we", "need"],
    &["we", "should"],
    &["we", "must"],
    &["you", "should"],
    &["you", "must"],
    &["you", "can"],
    &["you", "may"],
    &["would", "you", "mind"],
    &["do", "you", "mind"],
    &["can", "you"],
    &["could", "you"],
    &["would", "you"],
    &["will", "you"],
    &["can", "we"],
    &["could", "we"],
    &["shall", "we"],
    &["can", "i", "have"],
    &["can", "i", "get"],
    &["could", "i", "get"],
    &["why", "don't", "you"],
    &["why", "don't", "we"],
    &["why", "not"],
    &["how", "about"],
    &["don't", "forget", "to"],
    &["do", "not", "forget", "to"],
    &["don't", "hesitate", "to"],
    &["feel", "free", "to"],
    &["make", "sure", "to"],
    &["make", "sure", "you"],
    &["be", "sure", "to"],
    &["remember", "to"],
    &["go", "ahead", "and"],
    &["it's", "time", "to"],
    &["it's", "time", "for"],
    &["time", "to"],
    &["time", "for"],
    &["help", "me"],
    &["help", "us"],
    &["give", "me"],
    &["give", "us"],
    &["get", "me"],
    &["try", "to"],
];

/// Words between a verb and the name it acts on.
pub(super) const DETERMINERS: &[&str] = &[
    "the", "a", "an", "this", "that", "these", "my", "our", "your", "any", "some", "another", "all", "new", "full",
    "quick", "thorough", "careful", "proper", "complete", "short", "detailed", "deep", "strict", "big", "real", "omc",
    "omc's",
];

/// More words that may stand between a verb of [`ACTIVATE`] and the keyword: "switch over to", "do it in", "turn it on with".
pub(super) const BETWEEN: &[&str] = &[
    "up", "off", "on", "in", "into", "to", "with", "via", "using", "through", "over", "back", "out", "it", "them",
    "everything", "me", "us", "both", "again", "please", "just", "now", "skill", "mode", "command", "straight",
    "ahead", "and", "more", "once",
];

/// Verbs that start something.
pub(super) const ACTIVATE: &[&str] = &[
    "use", "using", "run", "rerun", "start", "restart", "enable", "activate", "invoke", "trigger", "launch", "try",
    "do", "go", "call", "begin", "engage", "employ", "apply", "initiate", "execute", "perform", "conduct", "resume",
    "continue", "turn", "switch", "change", "kick", "fire", "enter", "put", "hand", "proceed",
];

/// Verbs of work, at the start of a clause: it is an order.
pub(super) const WORK: &[&str] = &[
    "fix", "debug", "investigate", "resolve", "handle", "patch", "address", "implement", "build", "create", "make",
    "write", "add", "port", "migrate", "clean", "tidy", "test", "review", "update", "upgrade", "finish", "complete",
    "solve", "improve", "rewrite", "convert", "refactor", "work", "take", "change", "rename", "move", "remove",
    "delete", "replace", "optimize", "optimise", "speed", "set", "setup", "ship", "deploy", "release", "document",
    "check", "verify", "finalize", "extend", "extract", "split", "merge", "simplify", "design", "develop", "plan",
    "code", "scan", "audit", "find", "search", "look", "analyze", "analyse", "generate", "integrate", "configure",
    "install", "keep", "push", "get", "bring", "drive", "cover", "harden", "polish", "drop", "wire", "hook",
    "prepare", "produce", "translate", "close", "tackle", "attack", "triage", "reduce", "format", "lint", "bump",
    "validate", "support", "scaffold", "bootstrap", "prototype", "deliver", "crush", "prune", "dedupe", "de-duplicate",
    "cleanup", "strip", "purge", "eliminate", "parallelize", "parallelise",
];

/// Verbs that clean up code.
pub(super) const CLEANING: &[&str] = &["clean", "cleanup", "refactor", "simplify", "dedupe", "de-duplicate", "prune"];

/// Objects after a keyword that is a verb: "ralph this", "ulw the rest".
pub(super) const OBJECTS: &[&str] = &[
    "this", "the", "it", "that", "these", "those", "all", "every", "everything", "my", "our", "on", "until", "for",
    "with", "to",
];

/// Verbs that make a plan or a review: "draft a ralplan".
pub(super) const MAKE: &[&str] = &["make", "create", "write", "draft", "prepare", "produce", "give", "get"];

/// Words before a keyword that make it the tool of the work.
pub(super) const INSTRUMENTS: &[&str] = &["with", "via", "using", "through", "by"];

/// Words before a keyword that let it do the work.
pub(super) const CAUSATIVES: &[&str] = &["let", "have", "make", "get", "ask", "tell", "want", "need"];

/// Words that deny what follows.
pub(super) const NEGATORS: &[&str] = &[
    "not", "never", "without", "no", "cannot", "avoid", "except", "nor", "neither", "none", "don't", "dont",
    "doesn't", "didn't", "won't", "can't", "cant", "shouldn't", "mustn't", "wouldn't", "couldn't", "isn't", "aren't",
    "wasn't", "haven't", "hasn't", "refrain", "unless", "than", "prevent", "forbid", "forbidden",
];

/// Verbs whose object is to end or to stay away.
pub(super) const STOPPERS: &[&str] = &[
    "stop", "stopping", "stopped", "disable", "disabling", "kill", "killing", "quit", "exit", "end", "pause",
    "cancel", "cancelling", "skip", "skipping", "ignore", "uninstall", "abort", "terminate", "halt", "leave", "off",
    "of", "avoid", "remove", "drop", "delete", "escape", "down",
];

/// Words between a verb of [`STOPPERS`] and the keyword.
pub(super) const STOPPER_GAP: &[&str] = &[
    "using", "running", "doing", "starting", "with", "current", "active", "old", "previous", "whole", "from", "this",
];

/// Words before a keyword that ask about it, tell of it or compare it.
pub(super) const ASKING: &[&str] = &[
    "what", "what's", "whats", "why", "how", "who", "whose", "which", "whether", "explain", "explains", "explaining",
    "explanation", "describe", "describes", "describing", "description", "difference", "differences", "differ",
    "compare", "compares", "compared", "comparing", "comparison", "versus", "vs", "wonder", "wondering", "curious",
    "understand", "meaning", "mean", "means", "heard", "mention", "mentions", "mentioning", "discuss", "discussing",
    "called", "named", "said", "says", "wrote", "between", "define", "definition", "happens", "happened", "like",
    "likes", "love", "loves", "hate", "hates", "blame",
];

/// Words directly before a keyword (articles aside) that make it the topic.
pub(super) const TOPIC_PREPOSITIONS: &[&str] = &["about", "of", "regarding", "concerning", "re", "for", "from", "at"];

/// Verbs with which a question starts that is no polite request.
pub(super) const AUXILIARIES: &[&str] = &[
    "is", "are", "was", "were", "am", "does", "did", "has", "had", "should", "could", "can", "would", "will", "shall",
    "may", "might", "isn't", "aren't", "wasn't", "doesn't", "didn't", "hasn't",
];

/// The same, if a pronoun follows: alone they are orders ("do ralph", "have ralph fix it").
pub(super) const AUXILIARIES_BEFORE_PRONOUN: &[&str] = &["do", "have"];

/// Who does something, when it is not the agent that is asked.
pub(super) const SUBJECTS: &[&str] = &[
    "i", "we", "they", "he", "she", "it", "people", "users", "everyone", "somebody", "someone", "who", "that",
    "always", "usually", "often", "sometimes", "already", "i've", "we've", "i'm", "we're", "they're", "he's", "she's",
    "it's", "i'll", "we'll", "tried", "used",
];

/// Pronouns.
pub(super) const PRONOUNS: &[&str] = &["you", "i", "we", "they", "he", "she", "it", "u"];

/// What can be wrong with a thing.
pub(super) const FAULTS: &[&str] = &[
    "bug", "bugs", "issue", "issues", "problem", "problems", "error", "errors", "crash", "crashes", "failure",
    "failures", "regression", "typo", "leak", "deadlock", "mistake", "flaw",
];

/// Words between a fault and the thing it is in.
pub(super) const FAULT_PREPOSITIONS: &[&str] = &[
    "in", "of", "inside", "within", "from", "with", "on", "around", "during",
];

/// Nouns after a keyword that still mean the mode: "ralph loop", "autopilot mode".
pub(super) const MODE_NOUNS: &[&str] = &[
    "mode", "loop", "skill", "agent", "session", "run", "thing", "itself", "workflow",
];

/// Verbs after a keyword that tell of it.
pub(super) const TELLING: &[&str] = &[
    "is", "was", "were", "are", "has", "had", "have", "does", "did", "keeps", "kept", "isn't", "wasn't", "aren't",
    "doesn't", "didn't", "won't", "can't", "cannot", "shouldn't", "mustn't", "hasn't", "seems", "seemed", "looks",
    "looked", "failed", "fails", "broke", "breaks", "crashed", "crashes", "hangs", "hung", "stopped", "stops",
    "loops", "looped", "works", "worked", "stalls", "stalled", "never", "always", "runs", "ran", "spent", "takes",
    "took", "means", "meant", "uses", "used", "wrote", "writes", "said", "says", "made", "makes", "deleted",
    "deletes", "reports", "reported", "reviewed", "thinks", "told", "asked", "likes", "gets", "got", "goes", "went",
    "starts", "started", "finished", "ended", "ends", "died", "dies", "needs", "costs", "eats", "ate", "fixed", "and",
    "helps", "helped", "became", "becomes", "felt", "feels", "gave", "gives", "still", "just", "also", "could",
    "might", "would", "itself", "stuck", "broken", "failing", "detected",
];

/// Words of [`TELLING`] that tell only if one of the others follows them.
pub(super) const TELLING_ADVERBS: &[&str] = &[
    "and", "still", "just", "also", "could", "might", "would", "itself", "always",
];

/// Nouns after a keyword of which the keyword is only the name.
pub(super) const TOPIC_NOUNS: &[&str] = &[
    "docs", "documentation", "settings", "config", "configuration", "button", "banner", "label", "logs", "log",
    "icon", "keyword", "keywords", "hook", "hooks", "plugin", "tutorial", "guide", "article", "features", "users",
    "pricing", "cost", "costs", "explained", "explanation", "meaning", "faq", "vs", "versus", "compared",
    "definition", "variable", "class", "function", "not", "no", "off", "bug", "bugs", "issues", "problem", "problems",
    "crash", "crashes", "comment", "comments",
];

/// Modal verbs: with "not" they deny.
pub(super) const MODALS: &[&str] = &["should", "must", "may", "can", "will", "would", "could", "do", "might", "shall"];

/// What stands alone before a question mark and asks only for assent.
pub(super) const TAGS: &[&str] = &[
    "ok", "okay", "right", "alright", "please", "thanks", "yes", "deal", "cool", "no", "will you",
];

/// Objects after which a keyword at the end of an order is the way to do it: "fix it, ulw".
pub(super) const TRAILED: &[&str] = &["it", "this", "that", "these", "those", "them", "everything", "all", "now"];

/// Laughter: nobody laughs while giving an order.
pub(super) const LAUGHTER: &[&str] = &["ㅋㅋ", "ㅎㅎ", " lol", " lmao", "haha", "wwww", "哈哈", "笑"];

/// Denials after the keyword: Korean and Japanese, and the Chinese ones that stand there.
pub(super) const CJK_NEGATION_AFTER: &[&str] = &[
    // Korean.
    "없이", "쓰지", "사용하지", "하지 마", "하지마", "하지 말", "하지말", "지 마", "지마", "지 말", "지말", "말고",
    "안 쓰", "안쓰", "안 돌", "안돌", "안 켜", "돌리지", "켜지", "실행하지", "시작하지", "금지", "필요 없", "필요없",
    "끄고", "꺼", "끄기", "중단", "멈춰", "멈추", "중지", "정지", "취소", "대신", "빼고", "제외", "아니라", "아닌",
    "아니고", "종료", "그만", "끝내", "없애", "비활성", "싫", "안 할", "안할", "안 해", "안해",
    "면 안 ", "면 안돼", "면 안되", "안 써", "안써",
    // Japanese.
    "使わな", "使わず", "使うな", "使いたくな", "なしで", "無しで", "なしに", "抜きで", "しないで", "しなくて",
    "するな", "させないで", "やめて", "止めて", "とめて", "停止", "中止", "不要", "要らな", "いらな", "ではなく",
    "じゃなく", "でなく", "以外", "禁止", "切って", "無効", "終了", "キャンセル", "代わりに", "オフ", "使用しな",
    "使わん",
    // Chinese.
    "不用", "就不", "关掉", "關掉", "停掉",
];

/// Denials before the keyword.
pub(super) const CJK_NEGATION_BEFORE: &[&str] = &[
    "不要", "不用", "别", "別", "不使用", "不使", "禁止", "无需", "無需", "不必", "不想", "不能", "不许", "不許",
    "不准", "停止", "取消", "关闭", "關閉", "禁用", "而不是", "不是", "没有", "沒有", "没用", "除了", "不再", "勿",
    "莫", "停用", "退出", "结束", "結束", "中止", "절대", "금지", "사용하지", "안 쓰는",
];

/// Turns the keyword into the means, after it.
pub(super) const CJK_ACTIVATION_AFTER: &[&str] = &[
    // Korean.
    "써서", "써 ", "써줘", "써라", "써봐", "쓰자", "쓰고", "이용해", "이용하", "활용해", "활용하", "사용해", "사용하",
    "돌려", "돌리자", "돌린", "켜", "실행", "시작", "진행", "가동", "발동", "모드로", "적용해", "호출", "투입",
    "들어가", "맡겨", "시켜", "부탁",
    // Japanese.
    "を使", "使って", "を開始", "開始", "を起動", "起動", "を実行", "実行", "やって", "走らせ", "回して", "モードで",
    "に任せ", "お願い", "始めて", "動かして", "オンに", "有効", "を頼", "かけて",
    // Chinese.
    "模式", "来修", "来做", "来处理", "來", "走起", "开始", "启动", "啟動",
];

/// Particles that make the keyword the means, directly after it.
pub(super) const CJK_MEANS_PARTICLES: &[&str] = &[
    "로 ", "으로", "로서", "로\u{fffc}", "で", "にて", "を", "을 ", "를 ",
];

/// Turns the keyword into the means, before it.
pub(super) const CJK_ACTIVATION_BEFORE: &[&str] = &[
    "用", "启动", "啟動", "开启", "開啟", "运行", "運行", "执行", "執行", "打开", "打開", "开始", "開始", "启用",
    "啟用", "让", "讓", "进入", "進入", "调用", "調用", "跑", "切换到", "走",
];

/// Particles that make the keyword what the sentence is about, directly after it.
pub(super) const CJK_TOPIC_PARTICLES: &[&str] = &[
    "은 ", "는 ", "이 ", "가 ", "도 ", "만 ", "은,", "는,", "랑 ", "와 ", "과 ", "하고 ", "는", "은", "は", "が",
    "って", "也", "是", "会", "會", "能",
];

/// Particles and nouns directly after the keyword that make it the name of something else.
pub(super) const CJK_NAME_OF: &[&str] = &[
    "의 ", "에 대", "에 관", "에서", "에는", "에 버그", "에 문제", " 관련", " 키워드", " 버그", " 오류", " 에러",
    " 문제", " 문서", " 설정", " 로그", " 버튼", " 상태", " 기능", " 사용법", " 이슈", " 가이드", " 자료", " 소개",
    " 페이지", " 배너", " 라벨", " 차이", " 비교", "라는", "이라는", "란 ", "이란 ", "の", "という", "について",
    "に関", "とは", "的", "和", "跟", "与", "與", "有", "是什么", "是什麼", "怎么", "怎麼", "如何",
];

/// Asks or tells about the keyword. What stands before an activation in the sentence outweighs it.
pub(super) const CJK_ASKING: &[&str] = &[
    // Korean.
    "뭐야", "뭔데", "뭐지", "뭐가", "뭘", "뭐", "무엇", "무슨", "어떻게", "어떤", "설명", "사용법", "알려", "소개해",
    "소개 부탁", "궁금", "의미", "왜 ", "왜?", "얼마", "몇 번", "몇번", "토큰", "가격", "비용", "질문", "언제",
    "차이", "비교", "인가요", "나요", "까요", "어때", "뜻",
    // Japanese.
    "とは", "って何", "何", "使い方", "説明", "教えて", "知りたい", "違い", "違う", "なぜ", "どうして", "どう",
    "ですか", "ますか", "いくら", "いつ", "意味", "比較", "について",
    // Chinese.
    "什么", "什麼", "怎么", "怎麼", "怎样", "怎樣", "如何", "解释", "解釋", "说明", "說明", "为什么", "為什麼",
    "为何", "区别", "區別", "比较", "多少", "吗", "嗎", "介绍", "介紹", "哪个", "哪個", "是否", "关于", "關於",
];

/// Asks about the keyword in Thai, which has spaces enough to be read like English, but puts its question words anywhere.
pub(super) const THAI_ASKING: &[&str] = &[
    "ทำไม", "อะไร", "ยังไง", "อย่างไร", "คืออะไร", "หมายถึง", "แปลว่า", "อธิบาย", "มั้ย", "ไหม", "เหรอ", "หรอ",
    "หรือไม่", "หรือเปล่า", "ใช่ไหม", "ถูกมั้ย", "เกี่ยวกับ", "เหมือน", "เท่าไหร่", "กี่",
];

/// Asks for a way or an ability: a question even where the keyword is the means.
pub(super) const CJK_ASKING_FOR_A_WAY: &[&str] = &[
    "방법", "수 있", "수 없", "할까", "해도 돼", "해도 되", "해야 해?", "해야 돼", "사용법", "使い方", "方法",
    "できます", "できる", "可以吗", "可以嗎", "能不能",
];

/// Asks for work to be done.
pub(super) const CJK_REQUEST: &[&str] = &[
    "줘", "줄래", "주세요", "주십시오", "주라", "달라", "부탁", "하자", "해봐", "해라", "해주", "시켜", "바랍니다",
    "바람", "고쳐", "가자", "합시다", "해 ", "해!", "하세요", "고쳐라", "만들어", "추가", "작성", "ください",
    "下さい", "して", "てくれ", "てほしい", "なさい", "しよう", "よろしく", "お願い", "頼", "直し", "進め", "作って",
    "書いて", "请", "請", "帮我", "幫我", "吧", "修复", "修復", "修改", "重构", "重構", "实现", "實現", "添加",
    "处理", "處理", "完成", "优化", "優化",
];

/// Tells of a fault that comes again.
pub(super) const CJK_AGAIN: &[&str] = &[
    "자꾸", "계속", "또 ", "また", "何度も", "ずっと", "頻繁", "繰り返", "いつも", "总是", "總是", "一直", "老是",
];

/// The fault, after a word of [`CJK_AGAIN`].
pub(super) const CJK_FAULT: &[&str] = &[
    "재실행", "반복", "루프", "멈추", "멈춰", "죽", "실패", "에러", "오류", "失敗", "エラー", "ループ", "止ま",
    "落ち", "再実行", "動かな", "フリーズ", "壊れ", "クラッシュ", "こけ", "暴走", "無限", "失败", "循环", "迴圈",
    "卡", "崩", "出错",
];

/// Says that it does not work, after the keyword.
pub(super) const CJK_BROKEN: &[&str] = &[
    "이 안 돼", "이 안돼", "가 안 돼", "가 안돼", "안 됨", "안 멈", "멈추지", "끝나지", "고장", "먹통", "動かない",
    "壊れ", "止まらない", "終わらない", "坏了", "壞了", "停不下来", "卡住", "卡死", "멈췄", "죽었",
];
