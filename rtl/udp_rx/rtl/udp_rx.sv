// SPDX-License-Identifier: Apache-2.0
//
// Reads the headers of IPv4 or IPv6, UDP and memcached, verifies lengths and checksums, and hands a
// datagram's payload on when all of it is known to be right: nothing of a damaged datagram takes
// effect. The order of the checks is that of src/net/packet.h.
module udp_rx
  import wc_pkg::*;
#(
    parameter bit REPLIES = 1'b0   // datagrams that come from the port, not those that go there
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [15:0] udp_port,
    input  logic        eth_valid,
    output logic        eth_ready,
    input  eth_ctx_t    eth,
    input  logic        eth_v6,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    input  logic        in_error,
    output logic        ctx_valid,
    input  logic        ctx_ready,
    output ctx_t        ctx,
    output logic        info_valid,
    input  logic        info_ready,
    output info_t       info,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    // At the end of each frame one of them.
    output logic        passed,
    output logic        drop_not_for_us,
    output logic        drop_truncated,
    output logic        drop_checksum,
    output logic        drop_fragment,
    output logic        drop_unsupported,
    output logic        drop_malformed,
    output logic        drop_may_change   // with a drop: whoever reads more of it may find requests
);
  localparam logic [15:0] PAYLOAD_MAX = 16'd4000;

  typedef enum logic [3:0] {
    S_IP4, S_IP4_DST, S_IP4_OPTIONS, S_IP6, S_IP6_SRC, S_IP6_DST, S_UDP, S_PAYLOAD, S_DRAIN, S_SUM, S_END
  } state_t;
  state_t state;
  logic good, ends_good;

  logic [191:0] view;
  logic [4:0] count, take;
  logic [24:0] at_least;
  logic tail, window_ready;
  logic error_valid, error_flag, error_room;
  assign in_ready = window_ready && error_room;
  byte_window window (
      .clk, .rst, .in_valid(in_valid && error_room), .in_ready(window_ready), .in_data, .in_bytes,
      .in_last, .view, .count, .at_least, .tail, .take
  );
  fifo #(.W(1), .LOG(2)) errors (
      .clk, .rst, .in_valid(in_valid && in_ready && in_last), .in_ready(error_room),
      .in_data(in_error), .out_valid(error_valid), .out_ready(state == S_END && (ends_good || !good)),
      .out_data(error_flag)
  );

  // What has been found out about the frame.
  logic [15:0] ip_left;       // bytes that IP still carries, the rest of its header included
  logic [15:0] pay_left;      // bytes of the datagram's payload
  logic [3:0]  pay_take;      // of these, in the next beat
  logic        pay_ends;      // it is the last one
  logic [15:0] udp_size;
  logic [3:0]  option_words;
  logic [31:0] header_sum, sum;
  logic [19:0] addend;        // of what was taken in the cycle before
  logic        udp_taken;     // that was UDP's header
  logic        bad_header_sum;
  logic [11:0] pos, lf_end;
  logic bad_version, bad_length, fragment, extension, not_ours, short_udp, port_differs;
  logic bad_udp_size, no_header, multi_part, too_long, done;
  logic is_udp, is_tcp, to_port, tcp_data;
  ctx_t held;

  logic ends;
  assign ends = tail && take == count && at_least[1];

  // --- Fields of the window.
  logic [15:0] total_size;
  logic [3:0] ihl;
  assign ihl = view[3:0];
  assign total_size = swap16(view[31:16]);
  logic [15:0] udp_length, served_port;
  assign udp_length = swap16(view[47:32]);
  assign served_port = REPLIES ? swap16(view[15:0]) : swap16(view[31:16]);

  function automatic logic host4(logic [7:0] first);
    host4 = first != 8'd0 && first < 8'd224;
  endfunction

  logic fifo_ready;
  logic push;
  always_comb begin
    take = 5'd0;
    push = 1'b0;
    case (state)
      S_IP4: if (eth_valid && !eth_v6 && (at_least[20] || tail)) take = at_least[20] ? 5'd16 : count;
      S_IP4_DST: if (at_least[4]) take = 5'd4;
      S_IP4_OPTIONS: if (at_least[4]) take = 5'd4; else if (tail) take = count;
      S_IP6: if (at_least[8]) take = 5'd8; else if (tail) take = count;
      S_IP6_SRC, S_IP6_DST: if (at_least[16]) take = 5'd16; else if (tail) take = count;
      S_UDP: if (at_least[16]) take = 5'd16; else if (tail) take = count;
      S_PAYLOAD:
      if ((at_least[8] || tail) && fifo_ready) begin
        take = count > {1'b0, pay_take} ? {1'b0, pay_take} : count;
        push = 1'b1;
      end
      S_DRAIN: if (at_least[8] || tail) take = at_least[17] ? 5'd16 : count;
      default: ;
    endcase
  end

  // --- The last LF of this beat.
  logic [3:0] lf_in_beat;  // bytes up to and with it
  always_comb begin
    lf_in_beat = 4'd0;
    for (int i = 0; i < 8; i++)
      if (4'(i) < pay_take && view[8*i+:8] == 8'h0a) lf_in_beat = 4'(i + 1);
  end

  logic [63:0] beat;
  assign beat = view[63:0] & byte_mask(pay_take);

  logic [15:0] folded;
  assign folded = fold32(sum);
  logic bad_sum, short_frame;
  assign bad_sum = held.has_checksum ? folded != 16'hffff : held.v6;
  assign short_frame = ip_left != 16'd0;

  always_comb begin
    drop_not_for_us = 1'b0;
    drop_truncated = 1'b0;
    drop_checksum = 1'b0;
    drop_fragment = 1'b0;
    drop_unsupported = 1'b0;
    drop_malformed = 1'b0;
    good = 1'b0;
    if (state == S_END) begin
      if (error_flag) drop_checksum = 1'b1;
      else if (bad_version) drop_unsupported = 1'b1;
      else if (bad_length || short_frame) drop_truncated = 1'b1;
      else if (bad_header_sum) drop_checksum = 1'b1;
      else if (fragment) drop_fragment = 1'b1;
      else if (extension) drop_unsupported = 1'b1;
      else if (not_ours) drop_not_for_us = 1'b1;
      else if (short_udp) drop_truncated = 1'b1;
      else if (port_differs) drop_not_for_us = 1'b1;
      else if (bad_udp_size) drop_truncated = 1'b1;
      else if (too_long) drop_unsupported = 1'b1;
      else if (bad_sum) drop_checksum = 1'b1;
      else if (no_header || multi_part) drop_malformed = 1'b1;
      else good = 1'b1;
    end
  end
  // A damaged frame is read by nobody. What is surely for another port or protocol changes nothing
  // here, and a TCP segment without data neither.
  assign drop_may_change = state == S_END && !good && !error_flag &&
                           !(drop_not_for_us && !(to_port && (is_udp || (is_tcp && tcp_data))));
  assign ends_good = good && ctx_ready && info_ready;
  assign passed = ends_good;
  assign ctx_valid = good && info_ready;
  assign info_valid = good && ctx_ready;
  assign ctx = held;
  assign info.size = pos;
  assign info.lf_end = lf_end;
  assign eth_ready = state == S_END && (ends_good || !good);

  packet_fifo #(.W(69), .LOG(9)) payload (
      .clk, .rst, .in_valid(push), .in_ready(fifo_ready),
      .in_data({pay_ends, pay_take, beat}), .commit(ends_good),
      .abort(state == S_END && !good), .out_valid, .out_ready,
      .out_data({out_last, out_bytes, out_data})
  );

  // --- Sums of what is taken. They are added a cycle later, and S_SUM waits for the last one.
  logic [19:0] window_sum;
  logic [3:0] udp_second;  // bytes of the window's second half that UDP's size covers
  assign window_sum = {2'd0, beat_sum(view[63:0])} + {2'd0, beat_sum(view[127:64])};
  assign udp_second = udp_length[15:4] != 12'd0 ? 4'd8 : {1'b0, udp_length[2:0]};
  logic [15:0] after_udp;  // bytes of the payload, after UDP's and memcached's header
  assign after_udp = udp_length - 16'd16;

  logic [15:0] taken;
  assign taken = {11'd0, take};

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_IP4;
      done <= 1'b0;
    end else begin
      if (take != 5'd0 && state != S_DRAIN) ip_left <= ip_left > taken ? ip_left - taken : 16'd0;
      if (state == S_DRAIN) ip_left <= ip_left > taken ? ip_left - taken : 16'd0;
      if (ends) done <= 1'b1;
      addend <= '0;
      udp_taken <= 1'b0;
      bad_header_sum <= !held.v6 && fold32(header_sum) != 16'hffff;
      sum <= sum + {12'd0, addend} + (udp_taken ? {16'd0, udp_size} + 32'd17 : 32'd0);
      // Until UDP's header, it is the sum of the addresses.
      if (udp_taken) held.address_sum <= fold32(sum);
      case (state)
        S_IP4: begin
          // The start of a packet, of either version.
          bad_version <= 1'b0;
          bad_length <= 1'b0;
          fragment <= 1'b0;
          extension <= 1'b0;
          not_ours <= 1'b0;
          short_udp <= 1'b0;
          port_differs <= 1'b0;
          bad_udp_size <= 1'b0;
          no_header <= 1'b0;
          multi_part <= 1'b0;
          too_long <= 1'b0;
          is_udp <= 1'b0;
          is_tcp <= 1'b0;
          to_port <= 1'b0;
          tcp_data <= 1'b0;
          pos <= '0;
          lf_end <= '0;
          sum <= '0;
          held.eth <= eth;
          held.v6 <= eth_v6;
          held.src_ip <= '0;
          held.dst_ip <= '0;
          held.has_checksum <= 1'b1;
          if (eth_valid && eth_v6) begin
            if (take == 5'd0) state <= S_IP6;
          end
          if (take != 5'd0 && !eth_v6) begin
            if (!at_least[20]) begin
              bad_length <= 1'b1;
              state <= S_SUM;
            end else begin
              bad_version <= view[7:4] != 4'd4;
              bad_length <= ihl < 4'd5 || {10'd0, ihl, 2'd0} > total_size;
              ip_left <= total_size > 16'd16 ? total_size - 16'd16 : 16'd0;
              header_sum <= {12'd0, window_sum};
              addend <= {4'd0, swap16(view[111:96])} + {4'd0, swap16(view[127:112])};
              option_words <= ihl - 4'd5;
              fragment <= (swap16(view[63:48]) & 16'h3fff) != 16'd0;
              not_ours <= view[79:72] != 8'd17 || !host4(view[103:96]);
              is_udp <= view[79:72] == 8'd17;
              is_tcp <= view[79:72] == 8'd6;
              held.src_ip[31:0] <= swap32(view[127:96]);
              state <= (view[7:4] != 4'd4 || ihl < 4'd5 || {10'd0, ihl, 2'd0} > total_size) ? S_DRAIN
                       : S_IP4_DST;
            end
          end
        end
        S_IP4_DST:
        if (take != 5'd0) begin
          held.dst_ip[31:0] <= swap32(view[31:0]);
          not_ours <= not_ours || !host4(view[7:0]);
          header_sum <= header_sum + {16'd0, swap16(view[15:0])} + {16'd0, swap16(view[31:16])};
          addend <= {4'd0, swap16(view[15:0])} + {4'd0, swap16(view[31:16])};
          state <= ends ? S_SUM : option_words != 4'd0 ? S_IP4_OPTIONS : S_UDP;
          if (ends && (ip_left == 16'd4)) short_udp <= 1'b1;
        end
        S_IP4_OPTIONS:
        if (take != 5'd0) begin
          header_sum <= header_sum + {16'd0, swap16(view[15:0])} + {16'd0, swap16(view[31:16])};
          option_words <= option_words - 4'd1;
          if (ends) begin
            state <= S_SUM;
            short_udp <= 1'b1;
          end else if (option_words == 4'd1) begin
            state <= S_UDP;
          end
        end
        S_IP6:
        if (take != 5'd0) begin
          bad_version <= view[7:4] != 4'd6;
          bad_length <= !at_least[8];
          // The rest of the header, and what it says that follows.
          ip_left <= swap16(view[47:32]);
          fragment <= view[55:48] == 8'd44;
          extension <= view[55:48] == 8'd0 || view[55:48] == 8'd43 || view[55:48] == 8'd60;
          not_ours <= view[55:48] != 8'd17;
          is_udp <= view[55:48] == 8'd17;
          is_tcp <= view[55:48] == 8'd6;
          state <= ends ? S_SUM : S_IP6_SRC;
          if (ends) bad_length <= 1'b1;
        end
        S_IP6_SRC, S_IP6_DST:
        if (take != 5'd0) begin
          // The payload length does not count these bytes.
          ip_left <= ip_left;
          if (!at_least[16] || (ends && state == S_IP6_SRC)) bad_length <= 1'b1;
          if (view[7:0] == 8'hff || view[127:0] == 128'd0) not_ours <= 1'b1;
          if (state == S_IP6_SRC) held.src_ip <= {swap64(view[63:0]), swap64(view[127:64])};
          else held.dst_ip <= {swap64(view[63:0]), swap64(view[127:64])};
          addend <= window_sum;
          if (ends) short_udp <= 1'b1;
          state <= ends ? S_SUM : state == S_IP6_SRC ? S_IP6_DST : S_UDP;
        end
        S_UDP:
        if (take != 5'd0) begin
          short_udp <= ip_left < 16'd8 || !at_least[8];
          port_differs <= served_port != udp_port || view[15:0] == 16'd0;
          to_port <= swap16(view[31:16]) == udp_port;
          tcp_data <= ip_left > {10'd0, view[103:100], 2'd0};
          bad_udp_size <= udp_length < 16'd8 || udp_length > ip_left;
          too_long <= udp_length > PAYLOAD_MAX;
          no_header <= udp_length <= 16'd16;
          multi_part <= swap16(view[111:96]) != 16'd1;
          udp_size <= udp_length;
          pay_left <= after_udp;
          pay_take <= after_udp > 16'd8 ? 4'd8 : after_udp[3:0];
          pay_ends <= after_udp <= 16'd8;
          held.src_port <= swap16(view[15:0]);
          held.dst_port <= swap16(view[31:16]);
          held.has_checksum <= view[63:48] != 16'd0;
          held.request_id <= swap16(view[79:64]);
          // Where the datagram is too short for memcached's header, less than has been taken.
          addend <= {2'd0, beat_sum(view[63:0])} + {2'd0, beat_sum(view[127:64] & byte_mask(udp_second))};
          udp_taken <= 1'b1;
          if (ends) state <= S_SUM;
          else if (udp_length <= 16'd16 || udp_length > ip_left || udp_length > PAYLOAD_MAX ||
                   served_port != udp_port)
            state <= S_DRAIN;
          else state <= S_PAYLOAD;
        end
        S_PAYLOAD:
        if (push) begin
          addend <= {2'd0, beat_sum(beat)};
          pos <= pos + {8'd0, pay_take};
          if (lf_in_beat != 4'd0) lf_end <= pos + {8'd0, lf_in_beat};
          pay_left <= pay_left - {12'd0, pay_take};
          pay_take <= pay_left > 16'd16 ? 4'd8 : pay_left[3:0] - pay_take;
          pay_ends <= pay_left <= 16'd16;
          if (count < {1'b0, pay_take}) bad_length <= 1'b1;
          if (ends) state <= S_SUM;
          else if (pay_ends) state <= S_DRAIN;
        end
        S_DRAIN: if (ends) state <= S_SUM;
        S_SUM: state <= S_END;
        default:
        if (ends_good || !good) begin
          state <= S_IP4;
          done <= 1'b0;
        end
      endcase
    end
  end

  logic unused;
  assign unused = error_valid ^ done ^ (^udp_size);
endmodule
