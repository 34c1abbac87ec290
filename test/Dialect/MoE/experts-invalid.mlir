// RUN: plateau-opt %s -split-input-file -verify-diagnostics

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm1_experts(%x: tensor<?x4xf32>, %w: tensor<4x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{GM1: there are weights of 4 experts, and a rank has 2}}
  %r = moe.grouped_matmul %x, %w transpose by %p : (tensor<?x4xf32>, tensor<4x6x4xf32>, !plan) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm2_rows(%x: tensor<?x5xf32>, %w: tensor<2x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{GM2: weights 'tensor<2x6x4xf32>' take 4 columns to 6, but rows are 'tensor<?x5xf32>' and the result is 'tensor<?x6xf32>'}}
  %r = moe.grouped_matmul %x, %w transpose by %p : (tensor<?x5xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm2_result(%x: tensor<?x6xf32>, %w: tensor<2x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{GM2: weights 'tensor<2x6x4xf32>' take 6 columns to 4, but rows are 'tensor<?x6xf32>' and the result is 'tensor<?x5xf32>'}}
  %r = moe.grouped_matmul %x, %w by %p : (tensor<?x6xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x5xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm3_weights(%x: tensor<?x4xf32>, %w: tensor<2x6x4xbf16>, %p: !plan) {
  // expected-error @+1 {{GM3: rows, weights and result must have one element type}}
  %r = moe.grouped_matmul %x, %w transpose by %p : (tensor<?x4xf32>, tensor<2x6x4xbf16>, !plan) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm3_result(%x: tensor<?x4xbf16>, %w: tensor<2x6x4xbf16>, %p: !plan) {
  // expected-error @+1 {{GM3: rows, weights and result must have one element type}}
  %r = moe.grouped_matmul %x, %w transpose by %p : (tensor<?x4xbf16>, tensor<2x6x4xbf16>, !plan) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm4_rows(%x: tensor<32x4xf32>, %w: tensor<2x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{GM4: the rows of a plan are known when the step runs: 'tensor<32x4xf32>' and 'tensor<?x6xf32>' must be [?, columns]}}
  %r = moe.grouped_matmul %x, %w transpose by %p : (tensor<32x4xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_gm4_result(%x: tensor<?x4xf32>, %w: tensor<2x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{GM4: the rows of a plan are known when the step runs: 'tensor<?x4xf32>' and 'tensor<32x6xf32>' must be [?, columns]}}
  %r = moe.grouped_matmul %x, %w transpose by %p : (tensor<?x4xf32>, tensor<2x6x4xf32>, !plan) -> tensor<32x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_grad_gmg1_experts(%a: tensor<?x6xf32>, %b: tensor<?x4xf32>, %p: !plan) {
  // expected-error @+1 {{GMG1: the result is 'tensor<4x6x4xf32>', and it must be [2, 6, 4]}}
  %r = moe.grouped_matmul_grad %a, %b by %p : (tensor<?x6xf32>, tensor<?x4xf32>, !plan) -> tensor<4x6x4xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_grad_gmg1_columns(%a: tensor<?x6xf32>, %b: tensor<?x4xf32>, %p: !plan) {
  // expected-error @+1 {{GMG1: the result is 'tensor<2x4x6xf32>', and it must be [2, 6, 4]}}
  %r = moe.grouped_matmul_grad %a, %b by %p : (tensor<?x6xf32>, tensor<?x4xf32>, !plan) -> tensor<2x4x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_grad_gmg2_operands(%a: tensor<?x6xbf16>, %b: tensor<?x4xf32>, %p: !plan) {
  // expected-error @+1 {{GMG2: a and b must have one element type, and the result that type or f32}}
  %r = moe.grouped_matmul_grad %a, %b by %p : (tensor<?x6xbf16>, tensor<?x4xf32>, !plan) -> tensor<2x6x4xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_grad_gmg2_result(%a: tensor<?x6xf32>, %b: tensor<?x4xf32>, %p: !plan) {
  // expected-error @+1 {{GMG2: a and b must have one element type, and the result that type or f32}}
  %r = moe.grouped_matmul_grad %a, %b by %p : (tensor<?x6xf32>, tensor<?x4xf32>, !plan) -> tensor<2x6x4xbf16>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_grad_gmg3_init(%a: tensor<?x6xbf16>, %b: tensor<?x4xbf16>, %p: !plan, %i: tensor<2x6x4xbf16>) {
  // expected-error @+1 {{GMG3: init is 'tensor<2x6x4xbf16>' and the result 'tensor<2x6x4xf32>'}}
  %r = moe.grouped_matmul_grad %a, %b by %p onto %i : (tensor<?x6xbf16>, tensor<?x4xbf16>, !plan, tensor<2x6x4xbf16>) -> tensor<2x6x4xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @grouped_matmul_grad_gmg4_rows(%a: tensor<32x6xf32>, %b: tensor<?x4xf32>, %p: !plan) {
  // expected-error @+1 {{GMG4: the rows of a plan are known when the step runs: 'tensor<32x6xf32>' and 'tensor<?x4xf32>' must be [?, columns]}}
  %r = moe.grouped_matmul_grad %a, %b by %p : (tensor<32x6xf32>, tensor<?x4xf32>, !plan) -> tensor<2x6x4xf32>
  return
}

// -----

func.func @swiglu_sg1_columns(%h: tensor<?x11xf32>) {
  // expected-error @+1 {{SG1: 'tensor<?x11xf32>' must have twice the columns of 'tensor<?x6xf32>', and the same rows and element type}}
  %r = moe.swiglu %h : tensor<?x11xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @swiglu_sg1_rows(%h: tensor<?x12xf32>) {
  // expected-error @+1 {{SG1: 'tensor<?x12xf32>' must have twice the columns of 'tensor<8x6xf32>', and the same rows and element type}}
  %r = moe.swiglu %h : tensor<?x12xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @swiglu_sg1_element(%h: tensor<?x12xbf16>) {
  // expected-error @+1 {{SG1: 'tensor<?x12xbf16>' must have twice the columns of 'tensor<?x6xf32>', and the same rows and element type}}
  %r = moe.swiglu %h : tensor<?x12xbf16> -> tensor<?x6xf32>
  return
}

// -----

func.func @swiglu_columns(%h: tensor<?x?xf32>) {
  // expected-error @+1 {{operand #0 must be tensor [rows, columns], the columns static, of 32-bit float or bfloat16 type values, but got 'tensor<?x?xf32>'}}
  %r = moe.swiglu %h : tensor<?x?xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @swiglu_grad_sgg1_columns(%d: tensor<?x5xf32>, %h: tensor<?x12xf32>) {
  // expected-error @+1 {{SGG1: 'tensor<?x12xf32>' must have twice the columns of 'tensor<?x5xf32>', and the same rows and element type}}
  %r = moe.swiglu_grad %d, %h : tensor<?x5xf32>, tensor<?x12xf32>
  return
}

// -----

func.func @swiglu_grad_sgg1_rows(%d: tensor<7x6xf32>, %h: tensor<8x12xf32>) {
  // expected-error @+1 {{SGG1: 'tensor<8x12xf32>' must have twice the columns of 'tensor<7x6xf32>', and the same rows and element type}}
  %r = moe.swiglu_grad %d, %h : tensor<7x6xf32>, tensor<8x12xf32>
  return
}

// -----

func.func @swiglu_grad_sgg2_result(%d: tensor<?x6xf32>, %h: tensor<?x12xf32>) {
  // expected-error @+1 {{failed to verify that all of {input, result} have same type}}
  %r = "moe.swiglu_grad"(%d, %h) : (tensor<?x6xf32>, tensor<?x12xf32>) -> tensor<8x12xf32>
  return
}

// -----

func.func @scale_rows_sr1_count(%x: tensor<8x4xf32>, %f: tensor<7xf32>) {
  // expected-error @+1 {{SR1: 'tensor<7xf32>' must have one number for each row of 'tensor<8x4xf32>'}}
  %r = moe.scale_rows %x, %f : tensor<8x4xf32>, tensor<7xf32>
  return
}

// -----

func.func @scale_rows_sr1_dynamic(%x: tensor<?x4xf32>, %f: tensor<8xf32>) {
  // expected-error @+1 {{SR1: 'tensor<8xf32>' must have one number for each row of 'tensor<?x4xf32>'}}
  %r = moe.scale_rows %x, %f : tensor<?x4xf32>, tensor<8xf32>
  return
}

// -----

func.func @scale_rows_sr2_result(%x: tensor<8x4xf32>, %f: tensor<8xf32>) {
  // expected-error @+1 {{failed to verify that all of {input, result} have same type}}
  %r = "moe.scale_rows"(%x, %f) : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xbf16>
  return
}

// -----

func.func @row_dot_rd1_count(%a: tensor<8x4xf32>) {
  // expected-error @+1 {{RD1: 'tensor<7xf32>' must have one number for each row of 'tensor<8x4xf32>'}}
  %r = moe.row_dot %a, %a : tensor<8x4xf32> -> tensor<7xf32>
  return
}

// -----

func.func @row_dot_rd2_types(%a: tensor<8x4xf32>, %b: tensor<8x4xbf16>) {
  // expected-error @+1 {{failed to verify that all of {a, b} have same type}}
  %r = "moe.row_dot"(%a, %b) : (tensor<8x4xf32>, tensor<8x4xbf16>) -> tensor<8xf32>
  return
}
