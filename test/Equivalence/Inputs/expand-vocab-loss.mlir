// A vocabulary of 37 on ranks along the last axis of a grid, LOCAL columns each; 5 tokens a rank.
shard.grid @vocab(shape = GRID)

func.func @loss(%x: tensor<5x33xTYPE>, %t: tensor<LOCALx33xTYPE>, %labels: tensor<5xi32> {plateau.below = 37 : i64}, %b: tensor<LOCALxf32>, %g: tensor<5xf32>)
    -> (tensor<5xf32>, tensor<5xf32>, tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>, tensor<LOCALxf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %labels bias %b on @vocab vocabulary<size = 37, ignore_index = 3, label_smoothing = 1.0e-01, z_loss = 1.0e-02, softcap = 4.0>
    : (tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>, tensor<5xi32>, tensor<LOCALxf32>) -> (tensor<5xf32>, tensor<5xf32>)
  %dx, %dt, %db = moe.vocab_loss_grad %g, %x, %t, %labels, %lse bias %b on @vocab vocabulary<size = 37, ignore_index = 3, label_smoothing = 1.0e-01, z_loss = 1.0e-02, softcap = 4.0>
    : (tensor<5xf32>, tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>, tensor<5xi32>, tensor<5xf32>, tensor<LOCALxf32>)
    -> (tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>, tensor<LOCALxf32>)
  return %losses, %lse, %dx, %dt, %db : tensor<5xf32>, tensor<5xf32>, tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>, tensor<LOCALxf32>
}

func.func @embedding(%t: tensor<LOCALx33xTYPE>, %ids: tensor<5xi32> {plateau.below = 37 : i64}, %d: tensor<5x33xTYPE>)
    -> (tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>) {
  %x = moe.embedding %t, %ids on @vocab size(37) : (tensor<LOCALx33xTYPE>, tensor<5xi32>) -> tensor<5x33xTYPE>
  %dt = moe.embedding_grad %d, %ids on @vocab size(37) : (tensor<5x33xTYPE>, tensor<5xi32>) -> tensor<LOCALx33xTYPE>
  return %x, %dt : tensor<5x33xTYPE>, tensor<LOCALx33xTYPE>
}
