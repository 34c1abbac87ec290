// What experts compute, one op at a time. Each token goes to one expert, so that combine brings each row home as it is.
// GRID, RANKS, LOCAL and TYPE are put in by the tests.

!plan = !moe.plan<experts = 4, ranks = RANKS, tokens = 23, top_k = 1>
shard.grid @grid(shape = GRID)

func.func @matmul(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x9xTYPE>, %w: tensor<LOCALx14x9xTYPE>) -> tensor<23x14xTYPE> {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) by %plan on @grid : !plan
  %u = moe.grouped_matmul %rows, %w transpose by %plan : (tensor<?x9xTYPE>, tensor<LOCALx14x9xTYPE>, !plan) -> tensor<?x14xTYPE>
  %y = moe.combine rows(%u : tensor<?x14xTYPE> -> tensor<23x14xTYPE>) by %plan on @grid : !plan
  return %y : tensor<23x14xTYPE>
}

func.func @matmul_plain(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x9xTYPE>, %w: tensor<LOCALx9x14xTYPE>) -> tensor<23x14xTYPE> {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) by %plan on @grid : !plan
  %u = moe.grouped_matmul %rows, %w by %plan : (tensor<?x9xTYPE>, tensor<LOCALx9x14xTYPE>, !plan) -> tensor<?x14xTYPE>
  %y = moe.combine rows(%u : tensor<?x14xTYPE> -> tensor<23x14xTYPE>) by %plan on @grid : !plan
  return %y : tensor<23x14xTYPE>
}

func.func @matmul_grad(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x9xTYPE>, %d: tensor<23x14xTYPE>) -> tensor<LOCALx14x9xTYPE> {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) by %plan on @grid : !plan
  %drows = moe.dispatch rows(%d : tensor<23x14xTYPE> -> tensor<?x14xTYPE>) by %plan on @grid : !plan
  %w = moe.grouped_matmul_grad %drows, %rows by %plan : (tensor<?x14xTYPE>, tensor<?x9xTYPE>, !plan) -> tensor<LOCALx14x9xTYPE>
  return %w : tensor<LOCALx14x9xTYPE>
}

// In f32 whatever the rows are; onto a value that is read again, and onto that sum.
func.func @matmul_grad_f32(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x9xTYPE>, %d: tensor<23x14xTYPE>, %init: tensor<LOCALx14x9xf32>)
    -> (tensor<LOCALx14x9xf32>, tensor<LOCALx14x9xf32>, tensor<LOCALx14x9xf32>) {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) by %plan on @grid : !plan
  %drows = moe.dispatch rows(%d : tensor<23x14xTYPE> -> tensor<?x14xTYPE>) by %plan on @grid : !plan
  %w = moe.grouped_matmul_grad %drows, %rows by %plan : (tensor<?x14xTYPE>, tensor<?x9xTYPE>, !plan) -> tensor<LOCALx14x9xf32>
  %v = moe.grouped_matmul_grad %drows, %rows by %plan onto %init : (tensor<?x14xTYPE>, tensor<?x9xTYPE>, !plan, tensor<LOCALx14x9xf32>) -> tensor<LOCALx14x9xf32>
  %u = moe.grouped_matmul_grad %drows, %rows by %plan onto %v : (tensor<?x14xTYPE>, tensor<?x9xTYPE>, !plan, tensor<LOCALx14x9xf32>) -> tensor<LOCALx14x9xf32>
  return %w, %v, %u : tensor<LOCALx14x9xf32>, tensor<LOCALx14x9xf32>, tensor<LOCALx14x9xf32>
}

// Rows that came from tokens, and plain rows.
func.func @swiglu(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x14xTYPE>) -> (tensor<23x7xTYPE>, tensor<23x7xTYPE>) {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x14xTYPE> -> tensor<?x14xTYPE>) by %plan on @grid : !plan
  %a = moe.swiglu %rows : tensor<?x14xTYPE> -> tensor<?x7xTYPE>
  %y = moe.combine rows(%a : tensor<?x7xTYPE> -> tensor<23x7xTYPE>) by %plan on @grid : !plan
  %plain = moe.swiglu %x : tensor<23x14xTYPE> -> tensor<23x7xTYPE>
  return %y, %plain : tensor<23x7xTYPE>, tensor<23x7xTYPE>
}

func.func @swiglu_grad(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x14xTYPE>, %d: tensor<23x7xTYPE>) -> (tensor<23x14xTYPE>, tensor<23x14xTYPE>) {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x14xTYPE> -> tensor<?x14xTYPE>) by %plan on @grid : !plan
  %drows = moe.dispatch rows(%d : tensor<23x7xTYPE> -> tensor<?x7xTYPE>) by %plan on @grid : !plan
  %dh = moe.swiglu_grad %drows, %rows : tensor<?x7xTYPE>, tensor<?x14xTYPE>
  %y = moe.combine rows(%dh : tensor<?x14xTYPE> -> tensor<23x14xTYPE>) by %plan on @grid : !plan
  %plain = moe.swiglu_grad %d, %x : tensor<23x7xTYPE>, tensor<23x14xTYPE>
  return %y, %plain : tensor<23x14xTYPE>, tensor<23x14xTYPE>
}

// Each row with the value that came with it; rows that are read again keep their bytes.
func.func @scale_rows(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x9xTYPE>, %p: tensor<23x1xf32>, %f: tensor<23xf32>)
    -> (tensor<23x9xTYPE>, tensor<23x9xTYPE>, tensor<23x9xTYPE>) {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows, %values = moe.dispatch rows(%x : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) values(%p : tensor<23x1xf32> -> tensor<?xf32>) by %plan on @grid : !plan
  %z = moe.scale_rows %rows, %values : tensor<?x9xTYPE>, tensor<?xf32>
  %y = moe.combine rows(%z : tensor<?x9xTYPE> -> tensor<23x9xTYPE>) by %plan on @grid : !plan
  %back = moe.combine rows(%rows : tensor<?x9xTYPE> -> tensor<23x9xTYPE>) by %plan on @grid : !plan
  %plain = moe.scale_rows %x, %f : tensor<23x9xTYPE>, tensor<23xf32>
  return %y, %back, %plain : tensor<23x9xTYPE>, tensor<23x9xTYPE>, tensor<23x9xTYPE>
}

func.func @row_dot(%ids: tensor<23x1xi32> {plateau.below = 4 : i64}, %x: tensor<23x9xTYPE>, %d: tensor<23x9xTYPE>) -> (tensor<23x1xf32>, tensor<23xf32>) {
  %plan = moe.plan %ids on @grid : tensor<23x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) by %plan on @grid : !plan
  %drows = moe.dispatch rows(%d : tensor<23x9xTYPE> -> tensor<?x9xTYPE>) by %plan on @grid : !plan
  %dot = moe.row_dot %drows, %rows : tensor<?x9xTYPE> -> tensor<?xf32>
  %y = moe.combine values(%dot : tensor<?xf32> -> tensor<23x1xf32>) by %plan on @grid : !plan
  %plain = moe.row_dot %x, %d : tensor<23x9xTYPE> -> tensor<23xf32>
  return %y, %plain : tensor<23x1xf32>, tensor<23xf32>
}
