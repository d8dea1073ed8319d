// SPDX-License-Identifier: Apache-2.0
// Proved, for a memory that answers bursts in any order and interleaved: a request becomes bursts
// that cover its words in order, none of which crosses 64 bytes; a tag is not used again before its
// burst has left; the beats of any burst leave in its turn, in order, each once and unchanged, and
// none before it has been answered; the last one says whether its second word counts.
  logic f_started = 1'b0;
  // --- Requests.
  logic f_waits;                          // an offered request
  logic [SLOT_BITS-1:0] f_slot;
  logic [7:0] f_words;
  // --- Any burst, and any beat of it.
  (* anyconst *) logic [TAG_LOG:0] f_number;
  (* anyconst *) logic [1:0] f_beat;
  wire [TAG_LOG-1:0] f_tag = f_number[TAG_LOG-1:0];
  wire [TAG_LOG:0] f_open = issued - drained;
  wire [TAG_LOG:0] f_place = f_number - drained;
  wire f_live = f_place < f_open;
  logic [3:0] f_length;                   // its words
  wire [2:0] f_beats = f_length[3:1] + {2'd0, f_length[0]};
  logic f_have;                           // the beat has been answered
  logic [127:0] f_data;
  wire f_comes = r_valid && r_tag == f_tag && f_live && r_filled == {1'b0, f_beat};
  wire f_leaves = fetch && drained == f_number && beat == f_beat;
  logic f_left;                           // the beat is at the output
  // --- The burst that leaves.
  wire [3:0] f_head_length = length[head];
  wire [2:0] f_head_beats = f_head_length[3:1] + {2'd0, f_head_length[0]};
  wire [3:0] f_r_length = length[r_tag];
  wire [2:0] f_r_beats = f_r_length[3:1] + {2'd0, f_r_length[0]};
  wire [TAG_LOG-1:0] f_r_place = r_tag - head;

  // What the entry of the burst's tag says, in this lap; and of a tag that is not in use, that it will say 0.
  wire [3:0] f_entry = filled[f_tag];
  wire f_lap = drained[TAG_LOG] ^ (f_tag < head);
  wire [2:0] f_filled = f_entry[3] == f_lap ? f_entry[2:0] : 3'd0;
  wire [TAG_LOG-1:0] f_tag_place = f_tag - head;
  wire f_next_lap = issued[TAG_LOG] ^ (f_tag < issued[TAG_LOG-1:0]);

  initial assume (rst);
  always_comb begin
    if (req_valid) assume (req_words != 8'd0 && {1'b0, req_words} < 9'(2 ** SIZE_BITS));
    if (f_waits) assume (req_valid && req_slot == f_slot && req_words == f_words);
    // Memory answers what it has been asked.
    if (r_valid) assume ({1'b0, f_r_place} < f_open && r_filled < f_r_beats);
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    f_waits <= !rst && req_valid && !req_ready;
    f_slot <= req_slot;
    f_words <= req_words;
    if (rst) begin
      f_have <= 1'b0;
      f_left <= 1'b0;
    end else begin
      if (ar_valid && ar_ready && issued == f_number) f_length <= words;
      if (f_comes) begin
        f_have <= 1'b1;
        f_data <= r_data;
      end
      if (fetch && drained == f_number && {1'b0, beat} + 3'd1 == f_beats) f_have <= 1'b0;
      if (fetch) f_left <= f_leaves;
      else if (out_ready) f_left <= 1'b0;
    end
    if (f_started && !rst) begin
      // Requests.
      assert (offset[2:0] == 3'd0);
      if (offset != 8'd0) assert (f_waits && offset < f_words);
      if (ar_valid) begin
        assert ({1'b0, offset} + {5'd0, words} < 9'(2 ** SIZE_BITS));
        assert (ar_addr == {req_slot, offset[SIZE_BITS-1:1]} && ar_len >= 3'd1 && ar_len <= 3'd4);
        assert ({1'b0, ar_addr[1:0]} + ar_len <= 3'd4 && words != 4'd0 && words <= 4'd8);
        assert (req_ready == (ar_ready && {1'b0, offset} + {5'd0, words} == {1'b0, req_words}));
        assert (f_open != (TAG_LOG + 1)'(TAGS));
      end
      // Bursts.
      assert (cleared <= (TAG_LOG + 1)'(TAGS));
      if (clears) assert (issued == '0 && drained == '0);
      if ({1'b0, f_tag_place} >= f_open && {1'b0, f_tag} < cleared) assert (f_entry[3] != f_next_lap);
      assert (f_open <= (TAG_LOG + 1)'(TAGS));
      if (f_live) begin
        assert (length[f_tag] == f_length && f_length >= 4'd1 && f_length <= 4'd8);
        assert (f_filled <= f_beats);
        assert (f_have == (f_filled > {1'b0, f_beat}));
        if (f_have) assert (mem[{f_tag, f_beat}] == f_data);
        if (drained == f_number) assert ({1'b0, beat} < f_beats && {1'b0, beat} <= f_filled);
      end else begin
        assert (!f_have);
      end
      if (drained == issued) assert (beat == 2'd0);
      if (f_leaves) assert (f_live && f_have);
      if (f_left) begin
        assert (out_valid && out_data == f_data_left);
        assert (out_two == !f_odd_left);
      end
      if (!f_past_rst && f_past_held) assert (out_valid && out_data == f_past_data && out_two == f_past_two);
    end
  end
  logic [127:0] f_data_left, f_past_data;
  logic f_odd_left;   // it is the item's last word alone
  logic f_past_rst, f_past_held, f_past_two;
  always_ff @(posedge clk) begin
    if (f_leaves) begin
      f_data_left <= f_data;
      f_odd_left <= f_length[0] && {1'b0, f_beat} + 3'd1 == f_beats;
    end
    f_past_rst <= rst;
    f_past_held <= out_valid && !out_ready;
    f_past_data <= out_data;
    f_past_two <= out_two;
  end
