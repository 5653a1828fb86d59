func.func @main(%a: tensor<192x256xf32>, %x: tensor<256xf32>) -> tensor<192xf32> {
  %y = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : (tensor<192x256xf32>, tensor<256xf32>) -> tensor<192xf32>
  return %y : tensor<192xf32>
}
