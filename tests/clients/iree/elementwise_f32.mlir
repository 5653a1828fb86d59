// A chain of element-wise operations; the shape fills no workgroup evenly.
func.func @main(%a: tensor<37x53xf32>, %b: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %sum = stablehlo.add %a, %b : tensor<37x53xf32>
  %difference = stablehlo.subtract %a, %b : tensor<37x53xf32>
  %product = stablehlo.multiply %sum, %difference : tensor<37x53xf32>
  %larger = stablehlo.maximum %product, %a : tensor<37x53xf32>
  %magnitude = stablehlo.abs %b : tensor<37x53xf32>
  %root = stablehlo.sqrt %magnitude : tensor<37x53xf32>
  %result = stablehlo.multiply %larger, %root : tensor<37x53xf32>
  return %result : tensor<37x53xf32>
}
