func.func @main(%a: tensor<128x64xi8>, %b: tensor<64x128xi8>) -> tensor<128x128xi32> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xi8>, tensor<64x128xi8>) -> tensor<128x128xi32>
  return %c : tensor<128x128xi32>
}
