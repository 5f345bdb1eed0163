import yoke

tensors = [yoke.ones(4, device=f"cuda:{card}") for card in range(2)]
