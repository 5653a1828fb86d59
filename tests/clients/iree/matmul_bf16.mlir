// tolerance: 1e-3
func.func @main(%a: tensor<128x64xf32>, %b: tensor<64x128xf32>) -> tensor<128x128xf32> {
  %narrow_a = stablehlo.convert %a : (tensor<128x64xf32>) -> tensor<128x64xbf16>
  %narrow_b = stablehlo.convert %b : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %c = stablehlo.dot_general %narrow_a, %narrow_b, contracting_dims = [1] x [0] : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xf32>
  return %c : tensor<128x128xf32>
}
