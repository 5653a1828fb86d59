// tolerance: 1e-3
func.func @main(%a: tensor<4x64x32xf32>, %b: tensor<4x64x32xf32>) -> tensor<4x64x64xf32> {
  %narrow_a = stablehlo.convert %a : (tensor<4x64x32xf32>) -> tensor<4x64x32xf16>
  %narrow_b = stablehlo.convert %b : (tensor<4x64x32xf32>) -> tensor<4x64x32xf16>
  %c = stablehlo.dot_general %narrow_a, %narrow_b, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x64x32xf16>, tensor<4x64x32xf16>) -> tensor<4x64x64xf32>
  return %c : tensor<4x64x64xf32>
}
