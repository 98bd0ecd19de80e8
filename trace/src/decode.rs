//! From a batch of Arrow arrays, of whatever integer width and list or text form, to typed columns.

use std::borrow::Cow;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, ListArray, PrimitiveArray,
    RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};
use arrow::util::display::array_value_to_string;

use crate::error::Fault;
use crate::row::{Body, Row};
use crate::schema::{
    ARRIVAL_US, Column, Content, KIND, Kind, OUTPUT_TOKENS, PARENT_REQUEST, PRIORITY,
    PRIORITY_TTL_US, PROMPT_TOKENS, REMAINING_USES, REQUEST_ID, SESSION_ID, STEP, STEPS_TO_NEXT,
    TEMPLATE_ID, TEMPLATE_TOKENS, TENANT, TOOL,
};
use policy_api::Hints;

/// A fault and the row of the batch it is in.
pub(crate) type RowFault = (usize, Fault);

/// The columns of one batch.
pub(crate) struct Columns {
    rows: usize,
    request_id: UInt64Array,
    arrival_us: Int64Array,
    session_id: UInt64Array,
    step: Option<UInt32Array>,
    parent_request: Option<UInt64Array>,
    kind: Option<StringArray>,
    tenant: Option<UInt32Array>,
    tool: Option<StringArray>,
    prompt_tokens: UInt32Array,
    output_tokens: UInt32Array,
    body: BodyColumns,
    priority: Option<UInt32Array>,
    priority_ttl_us: Option<UInt64Array>,
    template_id: Option<UInt64Array>,
    template_tokens: Option<UInt32Array>,
    remaining_uses: Option<UInt32Array>,
    steps_to_next: Option<UInt32Array>,
}

enum BodyColumns {
    Tokens(ListArray, Option<ListArray>),
    Blocks(ListArray, Option<ListArray>),
}

impl Columns {
    /// Converts a batch.
    ///
    /// # Errors
    /// The first value of a column that is null where it must not be, or does not fit.
    pub(crate) fn decode(batch: &RecordBatch, content: Content) -> Result<Self, RowFault> {
        let [prompt, output] = content.body();
        let (prompt, output) = (required(batch, prompt)?, optional(batch, output)?);
        let prompt = prompt.as_list::<i32>().clone();
        let output = output.map(|array| array.as_list::<i32>().clone());
        Ok(Self {
            rows: batch.num_rows(),
            request_id: required(batch, &REQUEST_ID)?
                .as_primitive::<UInt64Type>()
                .clone(),
            arrival_us: required(batch, &ARRIVAL_US)?
                .as_primitive::<Int64Type>()
                .clone(),
            session_id: required(batch, &SESSION_ID)?
                .as_primitive::<UInt64Type>()
                .clone(),
            step: numbers(batch, &STEP)?,
            parent_request: numbers(batch, &PARENT_REQUEST)?,
            kind: names(batch, &KIND)?,
            tenant: numbers(batch, &TENANT)?,
            tool: names(batch, &TOOL)?,
            prompt_tokens: required(batch, &PROMPT_TOKENS)?
                .as_primitive::<UInt32Type>()
                .clone(),
            output_tokens: required(batch, &OUTPUT_TOKENS)?
                .as_primitive::<UInt32Type>()
                .clone(),
            body: match content {
                Content::Tokens => BodyColumns::Tokens(prompt, output),
                Content::Blocks { .. } => BodyColumns::Blocks(prompt, output),
            },
            priority: numbers(batch, &PRIORITY)?,
            priority_ttl_us: numbers(batch, &PRIORITY_TTL_US)?,
            template_id: numbers(batch, &TEMPLATE_ID)?,
            template_tokens: numbers(batch, &TEMPLATE_TOKENS)?,
            remaining_uses: numbers(batch, &REMAINING_USES)?,
            steps_to_next: numbers(batch, &STEPS_TO_NEXT)?,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Row `at` of the batch.
    pub(crate) fn row(&self, at: usize) -> Row<'_> {
        Row {
            request_id: self.request_id.value(at),
            arrival_us: self.arrival_us.value(at),
            session_id: self.session_id.value(at),
            step: number(self.step.as_ref(), at).unwrap_or(0),
            parent_request: number(self.parent_request.as_ref(), at),
            kind: Cow::Borrowed(name(self.kind.as_ref(), at).unwrap_or("")),
            tenant: number(self.tenant.as_ref(), at).unwrap_or(0),
            tool: name(self.tool.as_ref(), at).map(Cow::Borrowed),
            prompt_tokens: self.prompt_tokens.value(at),
            output_tokens: self.output_tokens.value(at),
            body: self.body.row(at),
            hints: Hints {
                priority: number(self.priority.as_ref(), at),
                priority_ttl_us: number(self.priority_ttl_us.as_ref(), at),
                template_id: number(self.template_id.as_ref(), at),
                template_tokens: number(self.template_tokens.as_ref(), at),
                remaining_uses: number(self.remaining_uses.as_ref(), at),
                steps_to_next: number(self.steps_to_next.as_ref(), at),
            },
        }
    }
}

impl BodyColumns {
    fn row(&self, at: usize) -> Body<'_> {
        match self {
            Self::Tokens(prompt, output) => Body::Tokens {
                prompt: Cow::Borrowed(list::<UInt32Type>(prompt, at)),
                output: known(output.as_ref(), at)
                    .map(|of| Cow::Borrowed(list::<UInt32Type>(of, at))),
            },
            Self::Blocks(prompt, output) => Body::Blocks {
                prompt: Cow::Borrowed(list::<UInt64Type>(prompt, at)),
                output: known(output.as_ref(), at)
                    .map(|of| Cow::Borrowed(list::<UInt64Type>(of, at))),
            },
        }
    }
}

/// The elements of list `at`.
fn list<T: ArrowPrimitiveType>(lists: &ListArray, at: usize) -> &[T::Native] {
    let offsets = lists.value_offsets();
    let range = offsets[at] as usize..offsets[at + 1] as usize;
    &lists.values().as_primitive::<T>().values()[range]
}

fn known(lists: Option<&ListArray>, at: usize) -> Option<&ListArray> {
    lists.filter(|lists| lists.is_valid(at))
}

fn number<T: ArrowPrimitiveType>(
    array: Option<&PrimitiveArray<T>>,
    at: usize,
) -> Option<T::Native> {
    let array = array?;
    array.is_valid(at).then(|| array.value(at))
}

fn name(array: Option<&StringArray>, at: usize) -> Option<&str> {
    let array = array?;
    array.is_valid(at).then(|| array.value(at))
}

fn numbers<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    column: &'static Column,
) -> Result<Option<PrimitiveArray<T>>, RowFault> {
    Ok(optional(batch, column)?.map(|array| array.as_primitive::<T>().clone()))
}

fn names(batch: &RecordBatch, column: &'static Column) -> Result<Option<StringArray>, RowFault> {
    Ok(optional(batch, column)?.map(|array| array.as_string::<i32>().clone()))
}

/// The converted column, which must be there and free of nulls.
fn required(batch: &RecordBatch, column: &'static Column) -> Result<ArrayRef, RowFault> {
    let fault = |row, found: &str| (row, Fault::new(column.name, found, column.kind.expected()));
    let array = optional(batch, column)?.ok_or_else(|| fault(0, "no such column"))?;
    match first_null(&array) {
        Some(row) if matches!(column.kind, Kind::U32List | Kind::U64List) => Err((
            row,
            Fault::new(column.name, "null", "a list, empty where there is nothing"),
        )),
        Some(row) => Err(fault(row, "null")),
        None => Ok(array),
    }
}

/// The converted column, if the file has it.
fn optional(batch: &RecordBatch, column: &'static Column) -> Result<Option<ArrayRef>, RowFault> {
    let Some(found) = batch.column_by_name(column.name) else {
        return Ok(None);
    };
    // A failed conversion yields null; what was not null before did not fit.
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let array = cast_with_options(found, &column.kind.read(), &options).map_err(|fault| {
        (
            0,
            Fault::new(column.name, fault.to_string(), column.kind.expected()),
        )
    })?;
    if array.null_count() > found.logical_null_count() {
        let row = (0..array.len())
            .find(|&row| array.is_null(row) && !is_null(found, row))
            .unwrap_or(0);
        let value = array_value_to_string(found, row).unwrap_or_default();
        return Err((row, Fault::new(column.name, value, fitting(column.kind))));
    }
    if let Some(lists) = array.as_list_opt::<i32>() {
        check_elements(lists, column)?;
    }
    Ok(Some(array))
}

fn fitting(kind: Kind) -> String {
    match kind {
        Kind::U32 | Kind::U32List => format!("an integer from 0 to {}", u32::MAX),
        Kind::U64 | Kind::U64List => format!("an integer from 0 to {}", u64::MAX),
        Kind::I64 => format!("an integer from 0 to {}", i64::MAX),
        Kind::Name => "text".to_owned(),
    }
}

fn check_elements(lists: &ListArray, column: &'static Column) -> Result<(), RowFault> {
    let Some(nulls) = lists
        .values()
        .nulls()
        .filter(|nulls| nulls.null_count() > 0)
    else {
        return Ok(());
    };
    let offsets = lists.value_offsets();
    for row in 0..lists.len() {
        let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
        if let Some(at) = (from..to).find(|&at| nulls.is_null(at)) {
            let found = format!("element {} is null, negative or too large", at - from);
            return Err((row, Fault::new(column.name, found, fitting(column.kind))));
        }
    }
    Ok(())
}

fn first_null(array: &ArrayRef) -> Option<usize> {
    (array.null_count() > 0)
        .then(|| (0..array.len()).find(|&row| array.is_null(row)))
        .flatten()
}

/// Whether a value is null, also by way of a dictionary.
fn is_null(array: &ArrayRef, row: usize) -> bool {
    array
        .logical_nulls()
        .is_some_and(|nulls| nulls.is_null(row))
}
