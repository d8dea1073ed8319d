// SPDX-License-Identifier: Apache-2.0
// Proved: memory's answers are passed on at once; a burst is answered with as many beats as it asks for, in order, each once, and with
// the words that its entry has been given last for them; none while the counts say that the writer has not ended.
  logic f_started = 1'b0;
  // Any two words of any entry.
  (* anyconst *) logic [HAZARDS_LOG-1:0] f_id;
  (* anyconst *) logic [WORDS_LOG-2:0] f_pair;
  logic f_written, f_mine;                  // the entry has been given words; and gets words now
  logic [WORDS_LOG-1:0] f_given;
  logic f_has_even, f_has_odd;
  logic [63:0] f_even, f_odd;
  // Beats from here that have been read, and those that have gone.
  logic [2:0] f_fetched, f_gone;
  logic f_past_mine, f_past_held, f_past_rst;
  logic [127:0] f_past_words, f_both;
  logic [TAG_LOG-1:0] f_past_tag;

  initial assume (rst);
  always_comb begin
    // The FIFO gives what it has got.
    if (head_valid) assume (len >= 3'd1 && len <= 3'd4);
    // No entry is written while it is read.
    if (fetch) assume (!(data_valid && id == from[HAZARDS_LOG-1:0]));
  end
  always_ff @(posedge clk) begin
    f_started <= 1'b1;
    f_past_rst <= rst;
    f_past_mine <= fetch && from[HAZARDS_LOG-1:0] == f_id && at == f_pair && f_has_even && f_has_odd;
    f_both <= {f_odd, f_even};
    f_past_held <= waits && memory_valid;
    f_past_words <= words;
    f_past_tag <= fetch ? head_tag : tag;
    if (write_begins) begin
      f_mine <= write_id == f_id;
      f_given <= '0;
    end else if (data_valid) begin
      f_given <= f_given + 1'b1;
    end
    if (rst) begin
      f_has_even <= 1'b0;
      f_has_odd <= 1'b0;
      f_fetched <= '0;
      f_gone <= '0;
      f_written <= 1'b0;
    end else begin
      if (write_begins) f_written <= 1'b1;
      if (f_written && f_mine && data_valid && f_given[WORDS_LOG-1:1] == f_pair) begin
        if (f_given[0]) begin
          f_has_odd <= 1'b1;
          f_odd <= data;
        end else begin
          f_has_even <= 1'b1;
          f_even <= data;
        end
      end
      if (fetch) f_fetched <= f_fetched + 3'd1;
      if (r_valid && !memory_valid) f_gone <= f_gone + 3'd1;
    end
    if (!f_written) assume (!data_valid);
    if (f_started && !rst) begin
      if (f_written) assert (f_mine == (id == f_id) && f_given == word);
      if (f_has_even) assert (even[{f_id, f_pair}] == f_even);
      if (f_has_odd) assert (odd[{f_id, f_pair}] == f_odd);
      if (memory_valid) assert (r_valid && r_tag == memory_tag && r_data == memory_data);
      else if (r_valid) assert (waits && r_data == words && r_tag == tag);
      assert (f_fetched - f_gone == {2'd0, waits});
      if (head_valid) assert (beat < len);
      else assert (beat == 3'd0);
      if (head_ready) assert (head_valid && beat + 3'd1 == len);
      if (fetch) assert (ended != from && ended - from < (HAZARDS_LOG + 2)'(2 ** (HAZARDS_LOG + 1)));
      if (!f_past_rst) begin
        if (f_past_mine) assert (waits && words == f_both);
        if (f_past_held) assert (waits && words == f_past_words);
        if (waits) assert (tag == f_past_tag);
      end
    end
  end
