// The number of rows is known only when the program runs.
// %x: rows 19
// modes: streams
func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x32xf32>) -> tensor<?x32xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>
  %z = stablehlo.tanh %y : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}
