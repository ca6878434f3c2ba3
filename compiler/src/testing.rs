//! Guests made by hand, small enough to be compiled in a moment.

use omc_artifact::{Manifest, pack};
use wasm_encoder::{
    CodeSection, ComponentBuilder, ComponentExportKind, ConstExpr, DataSection, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, ImportSection, Instruction, MemArg, MemorySection, MemoryType, Module, ModuleArg,
    NameMap, NameSection, PrimitiveValType, TypeSection, ValType,
};

/// A name that the guest's own code has for a function.
pub(crate) const FUNCTION_NAME: &str = "a_function_that_has_a_name";

/// What the guest adds to its argument. It lies in a data segment, at [`DATA_OFFSET`].
pub(crate) const SUMMAND: i32 = 1_234_567;
const DATA_OFFSET: i32 = 64;

/// A guest that exports `answer: func(x: u32) -> u32`, which adds [`SUMMAND`], and `fail: func(x: u32) -> u32`, which traps.
pub(crate) fn guest() -> Vec<u8> {
    let load = MemArg { offset: 0, align: 2, memory_index: 0 };
    component(&[
        Instruction::I32Const(DATA_OFFSET),
        Instruction::I32Load(load),
        Instruction::LocalGet(0),
        Instruction::I32Add,
        Instruction::End,
    ])
}

/// The same, but `answer` leaves no value: it can be read, and no compiler takes it.
pub(crate) fn guest_that_is_not_valid() -> Vec<u8> {
    component(&[Instruction::End])
}

/// A guest whose core module imports something that nothing gives, under this name.
pub(crate) fn guest_that_lacks(name: &str) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([], []);
    let mut imports = ImportSection::new();
    imports.import(name, "x", EntityType::Function(0));
    let mut module = Module::new();
    module.section(&types).section(&imports);
    let mut builder = ComponentBuilder::default();
    let module = builder.core_module(None, &module);
    builder.core_instantiate(None, module, NO_ARGUMENTS);
    with_manifest(&builder.finish())
}

/// None, with a type.
const NO_ARGUMENTS: [(&str, ModuleArg); 0] = [];

fn component(answer: &[Instruction<'_>]) -> Vec<u8> {
    let mut builder = ComponentBuilder::default();
    let module = builder.core_module(None, &core_module(answer));
    let instance = builder.core_instantiate(None, module, NO_ARGUMENTS);
    for name in ["answer", "fail"] {
        let core = builder.core_alias_export(None, instance, name, ExportKind::Func);
        let (signature, mut encoder) = builder.type_function(None);
        encoder.params([("x", PrimitiveValType::U32)]).result(Some(PrimitiveValType::U32.into()));
        let lifted = builder.lift_func(None, core, signature, []);
        builder.export(name, ComponentExportKind::Func, lifted, None);
    }
    with_manifest(&builder.finish())
}

fn with_manifest(component: &[u8]) -> Vec<u8> {
    let manifest = r#"{"name": "adder", "version": "1", "description": "Adds", "subscriptions": [{"event": "stop"}]}"#;
    let manifest = Manifest::parse(manifest.as_bytes()).expect("a manifest");
    pack(component, &manifest).expect("a guest")
}

fn core_module(answer: &[Instruction<'_>]) -> Module {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    let mut functions = FunctionSection::new();
    functions.function(0).function(0);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut exports = ExportSection::new();
    exports.export("answer", ExportKind::Func, 0).export("fail", ExportKind::Func, 1);
    let mut code = CodeSection::new();
    for body in [answer, &[Instruction::Unreachable, Instruction::End]] {
        let mut function = Function::new([]);
        for instruction in body {
            function.instruction(instruction);
        }
        code.function(&function);
    }
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(DATA_OFFSET), SUMMAND.to_le_bytes());
    let mut names = NameSection::new();
    let mut of_functions = NameMap::new();
    of_functions.append(0, FUNCTION_NAME);
    names.functions(&of_functions);

    let mut module = Module::new();
    module.section(&types).section(&functions).section(&memories).section(&exports).section(&code).section(&data);
    module.section(&names);
    module
}
