//! What names say: markers of languages and tools, frameworks, and the purposes of folders.

/// A file in the project's root that shows a language, a package manager or a build tool.
#[derive(Clone, Copy)]
pub(super) struct Marker {
    /// Its name; a leading `*` stands for any beginning.
    pub(super) file: &'static str,
    pub(super) language: Option<&'static str>,
    pub(super) manager: Option<&'static str>,
    pub(super) build_tool: Option<&'static str>,
    /// It shows its language only where nothing else shows one.
    pub(super) is_weak: bool,
}

impl Marker {
    pub(super) fn matches(&self, name: &str) -> bool {
        match self.file.strip_prefix('*') {
            Some(end) => name.len() > end.len() && name.ends_with(end),
            None => name == self.file,
        }
    }
}

const fn marker(file: &'static str, language: Option<&'static str>, manager: Option<&'static str>) -> Marker {
    Marker { file, language, manager, build_tool: None, is_weak: false }
}

const fn builds(tool: &'static str, marker: Marker) -> Marker {
    Marker { build_tool: Some(tool), ..marker }
}

/// In the order in which hints count.
pub(super) const MARKERS: &[Marker] = &[
    marker("package.json", Some("JavaScript/TypeScript"), Some("npm")),
    marker("tsconfig.json", Some("TypeScript"), None),
    marker("jsconfig.json", Some("JavaScript"), None),
    marker("pnpm-lock.yaml", None, Some("pnpm")),
    marker("yarn.lock", None, Some("yarn")),
    marker("package-lock.json", None, Some("npm")),
    marker("bun.lock", None, Some("bun")),
    marker("bun.lockb", None, Some("bun")),
    builds("cargo", marker("Cargo.toml", Some("Rust"), Some("cargo"))),
    marker("Cargo.lock", None, Some("cargo")),
    marker("pyproject.toml", Some("Python"), None),
    marker("requirements.txt", Some("Python"), Some("pip")),
    marker("uv.lock", None, Some("uv")),
    marker("poetry.lock", None, Some("poetry")),
    marker("Pipfile", None, Some("pipenv")),
    marker("go.mod", Some("Go"), Some("go")),
    marker("go.sum", None, Some("go")),
    builds("maven", marker("pom.xml", Some("Java"), Some("maven"))),
    builds("gradle", marker("build.gradle", Some("Java/Kotlin"), Some("gradle"))),
    builds("gradle", marker("build.gradle.kts", Some("Kotlin"), Some("gradle"))),
    marker("Gemfile", Some("Ruby"), Some("bundler")),
    marker("Gemfile.lock", None, Some("bundler")),
    marker("composer.json", Some("PHP"), Some("composer")),
    marker("composer.lock", None, Some("composer")),
    builds("cmake", marker("CMakeLists.txt", Some("C/C++"), None)),
    marker("*.csproj", Some("C#"), Some("nuget")),
    marker("*.fsproj", Some("F#"), Some("nuget")),
    // Last: everybody has one of these.
    Marker { is_weak: true, ..builds("make", marker("Makefile", Some("C/C++"), None)) },
];

/// Managers that somebody chose; the others are what a language comes with.
pub(super) const PREFERRED_MANAGERS: &[&str] =
    &["pnpm", "yarn", "bun", "cargo", "uv", "poetry", "pipenv", "bundler", "composer", "go"];

/// Where a framework is declared.
#[derive(Clone, Copy)]
pub(super) enum Ecosystem {
    Node,
    Rust,
    Python,
}

use Ecosystem::{Node, Python, Rust};

/// Frameworks and what they are for.
pub(super) const FRAMEWORKS: &[(Ecosystem, &str, &str)] = &[
    (Node, "next", "fullstack"),
    (Node, "nuxt", "fullstack"),
    (Node, "remix", "fullstack"),
    (Node, "sveltekit", "fullstack"),
    (Node, "@sveltejs/kit", "fullstack"),
    (Node, "astro", "fullstack"),
    (Node, "react", "frontend"),
    (Node, "react-dom", "frontend"),
    (Node, "vue", "frontend"),
    (Node, "svelte", "frontend"),
    (Node, "angular", "frontend"),
    (Node, "@angular/core", "frontend"),
    (Node, "solid-js", "frontend"),
    (Node, "preact", "frontend"),
    (Node, "express", "backend"),
    (Node, "fastify", "backend"),
    (Node, "koa", "backend"),
    (Node, "hapi", "backend"),
    (Node, "nestjs", "backend"),
    (Node, "@nestjs/core", "backend"),
    (Node, "jest", "testing"),
    (Node, "vitest", "testing"),
    (Node, "mocha", "testing"),
    (Node, "jasmine", "testing"),
    (Node, "playwright", "testing"),
    (Node, "@playwright/test", "testing"),
    (Node, "cypress", "testing"),
    (Node, "vite", "build"),
    (Node, "webpack", "build"),
    (Node, "rollup", "build"),
    (Node, "esbuild", "build"),
    (Node, "parcel", "build"),
    (Node, "turbopack", "build"),
    (Rust, "axum", "backend"),
    (Rust, "actix-web", "backend"),
    (Rust, "rocket", "backend"),
    (Python, "fastapi", "backend"),
    (Python, "django", "backend"),
    (Python, "flask", "backend"),
    (Python, "pytest", "testing"),
];

/// Folders at the top that show how a project is laid out.
pub(super) const MAIN_FOLDERS: &[&str] = &[
    "src",
    "lib",
    "app",
    "pages",
    "components",
    "tests",
    "test",
    "__tests__",
    "spec",
    "docs",
    "examples",
    "bin",
    "scripts",
    "public",
    "assets",
    "static",
];

const PURPOSES: &[(&str, &str)] = &[
    ("src", "Source code"),
    ("lib", "Library code"),
    ("app", "Application code"),
    ("components", "UI components"),
    ("pages", "Page components"),
    ("api", "API routes"),
    ("routes", "Route handlers"),
    ("controllers", "Controllers"),
    ("models", "Data models"),
    ("views", "View templates"),
    ("services", "Business logic services"),
    ("utils", "Utility functions"),
    ("helpers", "Helper functions"),
    ("middleware", "Middleware"),
    ("config", "Configuration files"),
    ("data", "Data files"),
    ("assets", "Static assets"),
    ("public", "Public files"),
    ("static", "Static files"),
    ("tests", "Test files"),
    ("test", "Test files"),
    ("__tests__", "Test files"),
    ("spec", "Test specifications"),
    ("docs", "Documentation"),
    ("examples", "Example code"),
    ("scripts", "Build/utility scripts"),
    ("bin", "Executable scripts"),
    ("dist", "Distribution/build output"),
    ("build", "Build output"),
    ("out", "Build output"),
    ("node_modules", "Dependencies"),
    ("vendor", "Third-party code"),
    ("types", "Type definitions"),
    ("typings", "Type definitions"),
    ("schemas", "Schema definitions"),
    ("migrations", "Database migrations"),
    ("seeds", "Database seeds"),
    ("fixtures", "Test fixtures"),
    ("mocks", "Mock data"),
    ("stubs", "Stub implementations"),
];

/// What a folder of this name is for, whatever the case of its letters.
pub(super) fn purpose(name: &str) -> Option<&'static str> {
    PURPOSES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, purpose)| *purpose)
}
