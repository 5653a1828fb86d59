// Conversions between the widths of numbers, both ways.
func.func @main(%a: tensor<300xf32>) -> (tensor<300xf32>, tensor<300xf32>, tensor<300xi8>, tensor<300xi64>) {
  %half = stablehlo.convert %a : (tensor<300xf32>) -> tensor<300xf16>
  %from_half = stablehlo.convert %half : (tensor<300xf16>) -> tensor<300xf32>
  %brain = stablehlo.convert %a : (tensor<300xf32>) -> tensor<300xbf16>
  %from_brain = stablehlo.convert %brain : (tensor<300xbf16>) -> tensor<300xf32>
  %scale = stablehlo.constant dense<25.0> : tensor<300xf32>
  %scaled = stablehlo.multiply %a, %scale : tensor<300xf32>
  %byte = stablehlo.convert %scaled : (tensor<300xf32>) -> tensor<300xi8>
  %long = stablehlo.convert %byte : (tensor<300xi8>) -> tensor<300xi64>
  return %from_half, %from_brain, %byte, %long : tensor<300xf32>, tensor<300xf32>, tensor<300xi8>, tensor<300xi64>
}
