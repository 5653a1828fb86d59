func.func @main(%a: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
  %exp = stablehlo.exponential %a : tensor<1000xf32>
  %log = stablehlo.log_plus_one %exp : tensor<1000xf32>
  %tanh = stablehlo.tanh %log : tensor<1000xf32>
  %sine = stablehlo.sine %a : tensor<1000xf32>
  %cosine = stablehlo.cosine %a : tensor<1000xf32>
  %squares = stablehlo.multiply %sine, %cosine : tensor<1000xf32>
  %logistic = stablehlo.logistic %a : tensor<1000xf32>
  %rsqrt = stablehlo.rsqrt %exp : tensor<1000xf32>
  %power = stablehlo.power %logistic, %rsqrt : tensor<1000xf32>
  return %tanh, %squares, %power : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>
}
